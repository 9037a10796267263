package zstd

import (
	"encoding/binary"
	"errors"
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

// TestMemoryBound: data with a larger size than any object is damaged.
func TestMemoryBound(t *testing.T) {
	c := compressortest.With(New(Options{}))(t, compressortest.Certificates(0, 10))
	const blocks = maxObject>>17 + 100 // of 128 KiB each
	// A single-segment frame with its size, and blocks that repeat a byte.
	frame := binary.LittleEndian.AppendUint64([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0}, blocks<<17)
	for i := range blocks {
		header := uint32(1<<17)<<3 | 1<<1
		if i == blocks-1 {
			header |= 1
		}
		frame = append(frame, byte(header), byte(header>>8), byte(header>>16), 'x')
	}
	if data, err := c.Decompress(nil, frame); !errors.Is(err, errDamaged) {
		t.Errorf("%d bytes decompressed from %d, %v", len(data), len(frame), err)
	}
}

// BenchmarkTrain trains a dictionary of as many samples as a store collects.
func BenchmarkTrain(b *testing.B) {
	samples := compressortest.Certificates(0, 200)
	for b.Loop() {
		if _, err := New(Options{}).Train(samples); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompressor(b *testing.B) {
	for name, level := range map[string]Level{"fast": LevelFast, "better": LevelBetter} {
		b.Run(name, func(b *testing.B) { compressortest.Bench(b, New(Options{Level: level})) })
	}
}
