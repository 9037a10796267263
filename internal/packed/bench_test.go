package packed_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/testkit"
)

// benchObjects is the number of different objects that a benchmark reads.
const benchObjects = 1000

func certificates() (all [][]byte, size int) {
	for n := range benchObjects {
		all = append(all, certificate(n))
		size += len(all[n])
	}
	return all, size / benchObjects
}

// withoutNoise is a typical Pruner.
func withoutNoise(b *testing.B) *packed.Packer {
	pruner, err := packed.NewPruner(packed.Prune{ManagedFields: true, LastApplied: true})
	if err != nil {
		b.Fatal(err)
	}
	return packed.NewPacker(pruner)
}

func BenchmarkPack(b *testing.B) {
	all, size := certificates()
	for name, packer := range map[string]*packed.Packer{"all": nil, "pruned": withoutNoise(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			defer measureCPU(b)()
			b.SetBytes(int64(size))
			for n := 0; b.Loop(); n++ {
				if packer.TryPack(all[n%benchObjects]) == nil {
					b.Fatal("not packed")
				}
			}
		})
	}
	b.Run("apimachinery", func(b *testing.B) {
		b.ReportAllocs()
		defer measureCPU(b)()
		b.SetBytes(int64(size))
		for n := 0; b.Loop(); n++ {
			if err := new(unstructured.Unstructured).UnmarshalJSON(all[n%benchObjects]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkHeap measures the heap size of packed objects.
func BenchmarkHeap(b *testing.B) {
	all, _ := certificates()
	for name, packer := range map[string]*packed.Packer{"all": nil, "pruned": withoutNoise(b)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				kept := make([]*packed.Object, 0, benchObjects)
				before := heapSize()
				size := 0
				for _, data := range all {
					kept = append(kept, packer.TryPack(data))
					size += kept[len(kept)-1].Size()
				}
				b.ReportMetric(float64(heapSize()-before)/benchObjects, "B/object")
				b.ReportMetric(float64(size)/benchObjects, "B/Size()")
				runtime.KeepAlive(kept)
			}
		})
	}
}

// measureCPU reports the CPU time per operation, which is independent of other processes. The returned func
// ends the measurement.
func measureCPU(b *testing.B) func() {
	before := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op") }
}

func cpuTime() int64 {
	used, err := testkit.CPUTime()
	if err != nil {
		return 0
	}
	return int64(used)
}

func heapSize() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func BenchmarkUnstructured(b *testing.B) {
	all, _ := certificates()
	packer := withoutNoise(b)
	objects := make([]*packed.Object, benchObjects)
	for n, data := range all {
		objects[n] = packer.TryPack(data)
	}
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		defer measureCPU(b)()
		for n := 0; b.Loop(); n++ {
			if _, err := objects[n%benchObjects].Decode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cold-cached", func(b *testing.B) {
		b.ReportAllocs()
		defer measureCPU(b)()
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			o := packer.TryPack(all[n%benchObjects])
			b.StartTimer()
			o.Unstructured()
		}
	})
	b.Run("hot", func(b *testing.B) {
		b.ReportAllocs()
		defer measureCPU(b)()
		u := objects[0].Unstructured()
		for b.Loop() {
			objects[0].Unstructured()
		}
		runtime.KeepAlive(u)
	})
	b.Run("apimachinery", func(b *testing.B) {
		texts := make([][]byte, benchObjects)
		for n, o := range objects {
			texts[n], _ = o.AppendJSON(nil)
		}
		b.ReportAllocs()
		defer measureCPU(b)()
		for n := 0; b.Loop(); n++ {
			if err := new(unstructured.Unstructured).UnmarshalJSON(texts[n%benchObjects]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkColdRead compares reading an object that is not decoded with the deep copy that client-go's users
// make. The two alternate, so that the result also holds on a busy machine.
func BenchmarkColdRead(b *testing.B) {
	all, _ := certificates()
	for name, packer := range map[string]*packed.Packer{"all": nil, "pruned": withoutNoise(b)} {
		objects, decoded := make([]*packed.Object, benchObjects), make([]*unstructured.Unstructured,
			benchObjects)
		for n, data := range all {
			objects[n] = packer.TryPack(data)
			decoded[n], _ = objects[n].Decode()
		}
		b.Run(name, func(b *testing.B) {
			var reads, copies int64
			for b.Loop() {
				start := cpuTime()
				for _, o := range objects {
					if _, err := o.Decode(); err != nil {
						b.Fatal(err)
					}
				}
				middle := cpuTime()
				for _, u := range decoded {
					u.DeepCopy()
				}
				reads, copies = reads+middle-start, copies+cpuTime()-middle
			}
			b.ReportMetric(float64(copies)/float64(reads), "times")
			b.ReportMetric(float64(reads)/float64(b.N*benchObjects), "cpu-ns/object")
		})
	}
}

func BenchmarkLabels(b *testing.B) {
	o := withoutNoise(b).TryPack(certificate(1))
	b.ReportAllocs()
	defer measureCPU(b)()
	for b.Loop() {
		if o.Labels().Get("env") != "prod" {
			b.Fatal("wrong")
		}
	}
}

func BenchmarkFromUnstructured(b *testing.B) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(certificate(1)); err != nil {
		b.Fatal(err)
	}
	packer := withoutNoise(b)
	b.ReportAllocs()
	defer measureCPU(b)()
	for b.Loop() {
		if _, err := packer.FromUnstructured(u); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAtRest decodes an object before and after an update with cold processor caches, as for rare
// updates. The metric is the median.
func BenchmarkAtRest(b *testing.B) {
	all, _ := certificates()
	packer := withoutNoise(b)
	others := make([]byte, 64<<20) // larger than the caches
	var took []time.Duration
	touched := 0
	for n := 0; b.Loop(); n++ {
		text := all[n%benchObjects]
		before := packer.TryPack(text)
		after := packer.TryPack(bytes.Replace(text, []byte(`"status":{`),
			fmt.Appendf(nil, `"status":{"attempts":%d,`, n), 1))
		for at := 0; at < len(others); at += 64 {
			others[at]++
			touched += int(others[at])
		}
		start := time.Now()
		packed.Pair(before, after)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns/pair")
	runtime.KeepAlive(touched)
}
