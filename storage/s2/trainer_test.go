package s2

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/crdcache/crdcache/storage/internal/compressortest"
)

func TestCompressor(t *testing.T) {
	for name, options := range map[string]Options{"default": {}, "small": {DictionarySize: 4 << 10},
		"too large": {DictionarySize: 1 << 30}} {
		t.Run(name, func(t *testing.T) { compressortest.Test(t, New(options)) })
	}
}

// TestMemoryBound: data with a larger size than any object is damaged.
func TestMemoryBound(t *testing.T) {
	c := compressortest.With(New(Options{}))(t, compressortest.Certificates(0, 10))
	data := append(binary.AppendUvarint(nil, maxObject+1), "something"...)
	if back, err := c.Decompress(nil, data); !errors.Is(err, errDamaged) || cap(back) > 0 {
		t.Errorf("%d bytes of memory for %d, %v", cap(back), len(data), err)
	}
}

func FuzzRoundTrip(f *testing.F) { compressortest.FuzzRoundTrip(f, New(Options{})) }

// BenchmarkTrain creates a dictionary of as many samples as a store collects.
func BenchmarkTrain(b *testing.B) {
	samples := compressortest.Certificates(0, 200)
	for b.Loop() {
		if _, err := New(Options{}).Train(samples); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompressor(b *testing.B) { compressortest.Bench(b, New(Options{})) }
