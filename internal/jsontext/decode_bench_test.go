package jsontext_test

import (
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/testkit"
)

type decoderCase struct {
	name   string
	decode func([]byte) (map[string]any, error)
}

func decoderCases() []decoderCase {
	return []decoderCase{
		{"sigs.k8s.io", reference},
		{"ours", jsontext.NewDecoder().Decode},
	}
}

// reference is the decoder with the expected results.
func reference(data []byte) (map[string]any, error) {
	object := map[string]any{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object)
	return object, err
}

func BenchmarkDecode(b *testing.B) {
	for _, size := range sizes {
		documents := documents(1000, size.make)
		for _, way := range decoderCases() {
			b.Run(size.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(documents[0])))
				for i := 0; b.Loop(); i++ {
					if _, err := way.decode(documents[i%len(documents)]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRetained measures the heap that decoded objects retain.
func BenchmarkRetained(b *testing.B) {
	const count = 5000
	for _, size := range sizes {
		documents := documents(count, size.make)
		for _, way := range decoderCases() {
			b.Run(size.name+"/"+way.name, func(b *testing.B) {
				var retained uint64
				for b.Loop() {
					before := liveHeap()
					objects := make([]map[string]any, count)
					for i, document := range documents {
						objects[i], _ = way.decode(document)
					}
					retained = liveHeap() - before
					runtime.KeepAlive(objects)
				}
				b.ReportMetric(float64(retained)/count, "B/object")
			})
		}
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// scheme is apimachinery's decoder of unstructured objects: it determines the kind in a separate pass, and
// then decodes like the reference.
func scheme(data []byte) (map[string]any, error) {
	object, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	return object.(*unstructured.Unstructured).Object, nil
}

// BenchmarkRatio measures how many times faster decoding is than apimachinery's ("times"), and than the
// single pass of sigs.k8s.io/json in it. The decoders alternate and CPU time is measured, so that the result
// also holds on a busy machine.
func BenchmarkRatio(b *testing.B) {
	const round = 200
	for _, size := range sizes {
		documents := documents(round, size.make)
		for _, way := range decoderCases()[1:] {
			b.Run(size.name+"/"+way.name, func(b *testing.B) {
				var theirs, onePass, ours int64
				for b.Loop() {
					theirs += cost(b, scheme, documents)
					onePass += cost(b, reference, documents)
					ours += cost(b, way.decode, documents)
				}
				b.ReportMetric(float64(theirs)/float64(ours), "times")
				b.ReportMetric(float64(onePass)/float64(ours), "times-one-pass")
				b.ReportMetric(float64(ours)/float64(b.N*round), "cpu-ns/object")
			})
		}
	}
}

// cost returns the CPU time of decoding documents, including garbage collection.
func cost(b *testing.B, decode func([]byte) (map[string]any, error), documents [][]byte) int64 {
	start := used(b)
	for _, document := range documents {
		if _, err := decode(document); err != nil {
			b.Fatal(err)
		}
	}
	return used(b) - start
}

func used(b *testing.B) int64 {
	used, err := testkit.CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	return int64(used)
}
