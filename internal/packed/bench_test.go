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

func certificateList() (all [][]byte, size int) {
	for n := range benchObjects {
		all = append(all, certificate(n))
		size += len(all[n])
	}
	return all, size / benchObjects
}

// noisePruner returns a Packer with a typical Pruner.
func noisePruner(b *testing.B) *packed.Packer {
	pruner, err := packed.NewPruner(packed.Prune{ManagedFields: true, LastApplied: true})
	if err != nil {
		b.Fatal(err)
	}
	return packed.NewPacker(pruner)
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

func BenchmarkFromUnstructured(b *testing.B) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(certificate(1)); err != nil {
		b.Fatal(err)
	}
	packer := noisePruner(b)
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
	all, _ := certificateList()
	packer := noisePruner(b)
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
		packed.PeekPair(before, after)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns/pair")
	runtime.KeepAlive(touched)
}
