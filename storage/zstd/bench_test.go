package zstd

import "testing"

// BenchmarkTrain learns a dictionary of as many samples as a store gathers.
func BenchmarkTrain(b *testing.B) {
	samples := certificates(0, 200)
	for b.Loop() {
		if _, err := New(Options{}).Train(samples); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	for name, level := range map[string]Level{"fast": LevelFast, "better": LevelBetter} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c, err := New(Options{Level: level}).Train(certificates(0, 200))
			if err != nil {
				b.Fatal(err)
			}
			objects := certificates(1000, 100)
			var dst []byte
			before, after := 0, 0
			for n := 0; b.Loop(); n++ {
				dst = c.Compress(dst[:0], objects[n%100])
				before += len(objects[n%100])
				after += len(dst)
			}
			b.ReportMetric(float64(before)/float64(after), "ratio")
			b.ReportMetric(float64(after)/float64(b.N), "B/object")
		})
	}
}

func BenchmarkDecompress(b *testing.B) {
	b.ReportAllocs()
	c, err := New(Options{}).Train(certificates(0, 200))
	if err != nil {
		b.Fatal(err)
	}
	small := c.Compress(nil, certificate(1000))
	var dst []byte
	for b.Loop() {
		if dst, err = c.Decompress(dst[:0], small); err != nil {
			b.Fatal(err)
		}
	}
}
