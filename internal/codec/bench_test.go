package codec_test

import (
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/internal/codec"
)

// serializers are what benchmarks compare.
func serializers() map[string]kruntime.NegotiatedSerializer {
	return map[string]kruntime.NegotiatedSerializer{
		"stock": stock(),
		"codec": codec.Wrap(stock()),
	}
}

// benchObjects is how many objects one round of a benchmark reads.
const benchObjects = 1000

// BenchmarkList reads a list, and measures the heap that it occupies.
func BenchmarkList(b *testing.B) {
	data := []byte(widgetList(benchObjects))
	for name, s := range serializers() {
		decoder := jsonInfo(b, s).Serializer
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := decoder.Decode(data, nil, &unstructured.UnstructuredList{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchObjects, "ns/object")
			before := liveHeap()
			list := &unstructured.UnstructuredList{}
			if _, _, err := decoder.Decode(data, nil, list); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(liveHeap()-before)/benchObjects, "B/object")
			runtime.KeepAlive(list)
		})
	}
}

// BenchmarkWatch reads events from a stream, through all layers.
func BenchmarkWatch(b *testing.B) {
	var stream strings.Builder
	for n := range benchObjects {
		stream.WriteString(event("ADDED", widget(n)))
	}
	all := serializers()
	all["packed"] = codec.WrapPacked(stock(), nil, nil)
	for name, s := range all {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				replay(b, s, strings.NewReader(stream.String()))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchObjects, "ns/object")
		})
	}
}

// BenchmarkReadList packs a list as it arrives, and measures the heap that it occupies.
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
