package zstd

import (
	"testing"

	"github.com/crdcache/crdcache/storage/internal/compressortest"
)

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
