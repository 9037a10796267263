package codec_test

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/codec"
)

// benchObjects is the number of objects read in one round of a benchmark.
const benchObjects = 1000

// BenchmarkWatch compares client-go's decoder with Events.
func BenchmarkWatch(b *testing.B) {
	var stream strings.Builder
	for n := range benchObjects {
		stream.WriteString(event("ADDED", widget(n)))
	}
	for name, read := range map[string]func(){
		"stock": func() { replay(b, strings.NewReader(stream.String())) },
		"packed": func() {
			events := codec.NewEvents(io.NopCloser(strings.NewReader(stream.String())),
				clientGoSerializer(), nil)
			for _, _, err := events.Next(); err == nil; _, _, err = events.Next() {
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchObjects, "ns/object")
		})
	}
}

// BenchmarkReadList packs a list as it arrives, and measures the heap that the list occupies.
func BenchmarkReadList(b *testing.B) {
	data := widgetList(benchObjects)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codec.ReadList(strings.NewReader(data), nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchObjects, "ns/object")
	before := liveHeap()
	list, err := codec.ReadList(strings.NewReader(data), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(liveHeap()-before)/benchObjects, "B/object")
	runtime.KeepAlive(list)
	runtime.KeepAlive(data)
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
