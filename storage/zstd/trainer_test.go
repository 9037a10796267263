package zstd

import (
	"testing"

	"github.com/crdcache/crdcache/storage/internal/compressortest"
)

func TestCompressor(t *testing.T) {
	for name, options := range map[string]Options{"default": {}, "better": {Level: LevelBetter},
		"small": {DictionarySize: 4 << 10}} {
		t.Run(name, func(t *testing.T) { compressortest.Test(t, New(options)) })
	}
}

// TestOtherDictionary: data compressed with another dictionary is damaged.
func TestOtherDictionary(t *testing.T) {
	train := compressortest.With(New(Options{}))
	small := train(t, compressortest.Certificates(0, 200)).Compress(nil, compressortest.Certificate(1000))
	if _, err := train(t, compressortest.Certificates(0, 200)).Decompress(nil, small); err == nil {
		t.Error("no error")
	}
}

func FuzzRoundTrip(f *testing.F) { compressortest.FuzzRoundTrip(f, New(Options{})) }
