package dynamicinformer_test

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	crdcache "github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// BenchmarkFactories fills a cache with Deployments. It reports the CPU time, including that of the server,
// and the live heap.
func BenchmarkFactories(b *testing.B) {
	const objects = 5000
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	server := apitest.New(b, apitest.Type{GVR: deployments, Kind: "Deployment", Namespaced: true})
	for n := range objects {
		server.Create(b, deployments, deployment(n))
	}
	client, err := crdcache.NewClient(server.Config(), server.HTTPClient(b))
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name   string
		api    api
		client dynamic.Interface
	}{
		{"client-go", clientGoAPI, server.Client(b)}, {"ours", ourAPI, server.Client(b)},
		{"packed", packedAPI, server.Client(b)}, {"packed with NewClient", packedAPI, client},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var heap, cpu float64
			for b.Loop() {
				heapBefore, cpuBefore := usage(b)
				stop := make(chan struct{})
				f := bench.api.factory(bench.client, 0, "", nil)
				f.ForResource(deployments)
				f.Start(stop)
				f.WaitForCacheSync(stop)
				heapAfter, cpuAfter := usage(b)
				heap, cpu = heap+heapAfter-heapBefore, cpu+cpuAfter-cpuBefore
				close(stop)
				f.Shutdown()
			}
			b.ReportMetric(heap/float64(b.N)/objects, "heap-B/object")
			b.ReportMetric(cpu/float64(b.N)/objects, "cpu-ns/object")
		})
	}
}

// usage returns the live heap in bytes, and the CPU time in nanoseconds.
func usage(b *testing.B) (heap, cpu float64) {
	b.Helper()
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	time, err := testkit.CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	return float64(stats.HeapAlloc), float64(time)
}

// deployment returns a Deployment of about 8 KB with managedFields.
func deployment(n int) *unstructured.Unstructured {
	env, fields := []any{}, map[string]any{}
	for k := range 50 {
		env = append(env, map[string]any{"name": fmt.Sprintf("SERVICE_%d_URL", k),
			"value": fmt.Sprintf("https://service-%d-%d.example.com:8443/v1", n, k)})
		fields[fmt.Sprintf(`k:{"name":"SERVICE_%d_URL"}`, k)] = map[string]any{".": map[string]any{}}
	}
	name := fmt.Sprintf("deployment-%d", n)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": fmt.Sprintf("team-%d", n%40),
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update",
				"apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": fields}}}},
		"spec": map[string]any{"replicas": int64(3), "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "image": "registry.example.com/" + name,
				"env": env}}}}},
		"status": map[string]any{"readyReplicas": int64(3)},
	}}
}
