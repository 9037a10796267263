package jsontext_test

import (
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/testkit/cputime"
)

// way is a way to decode an object.
type way struct {
	name   string
	decode func([]byte) (map[string]any, error)
}

func ways() []way {
	return []way{
		{"sigs.k8s.io", reference},
		{"ours", jsontext.NewDecoder().Decode},
	}
}

// reference is what this package has to agree with.
func reference(data []byte) (map[string]any, error) {
	object := map[string]any{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object)
	return object, err
}

func BenchmarkDecode(b *testing.B) {
	for _, size := range sizes {
		documents := documents(1000, size.make)
		for _, way := range ways() {
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

// BenchmarkRetained measures the heap that decoded objects occupy once the rest is collected.
func BenchmarkRetained(b *testing.B) {
	const count = 5000
	for _, size := range sizes {
		documents := documents(count, size.make)
		for _, way := range ways() {
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

// scheme is how apimachinery decodes unstructured objects: it looks for the kind first, in a pass of its own,
// and then reads as the reference does.
func scheme(data []byte) (map[string]any, error) {
	object, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	return object.(*unstructured.Unstructured).Object, nil
}

// BenchmarkRatio tells how many times faster decoding is than apimachinery's ("times"), and than the single
// pass of sigs.k8s.io/json within that. They take turns and CPU time counts, so that the result holds on a
// busy machine, too.
func BenchmarkRatio(b *testing.B) {
	const round = 200
	for _, size := range sizes {
		documents := documents(round, size.make)
		for _, way := range ways()[1:] {
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

// cost is the CPU time of decoding documents, with that of the garbage collector.
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
	used, err := cputime.Used()
	if err != nil {
		b.Fatal(err)
	}
	return int64(used)
}
