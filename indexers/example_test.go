package indexers_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
)

const exampleConfig = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: example}
spec:
  resources:
  - name: certs
    match: {group: cert-manager.io, version: v1, resource: certificates}
    indexes:
    - {name: dns, path: ".spec.dnsNames[*]", transform: [Lower]}
    - name: condition
      each: ".status.conditions[*]"
      key: [{name: type, path: .type}, {name: status, path: .status}]
`

// The functions of a config work with any cache.Indexer, and so with any informer.
func Example() {
	config, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(exampleConfig)})
	must(err)
	certs, _ := config.Resource("certs")
	functions := indexers.Compile(certs)
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, functions.Indexers())
	_ = store.Add(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "prod", "name": "web"},
		"spec":     map[string]any{"dnsNames": []any{"WWW.example.com", "example.com"}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}},
	}})

	keys, _ := store.IndexKeys("dns", "www.example.com")
	fmt.Println(keys)
	keys, _ = store.IndexKeys("condition", indexers.Value("Ready", "False"))
	fmt.Println(keys)
	fmt.Println(certs.Indexes[1].Name, certs.Indexes[1].Keys)
	// Output:
	// [prod/web]
	// [prod/web]
	// condition [type status]
}

// All errors are reported together.
func ExampleParse_errors() {
	_, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(`apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: example}
spec:
  resources:
  - name: certs
    match: {group: cert-manager.io, version: v1, resource: certificates}
    indexes:
    - {name: dns, pathes: ".spec.dnsNames[*]"}
    - {name: ready, path: '.status.conditions[?(@.type="Ready")].status'}
`)})
	fmt.Println(err)
	// Output:
	// indexes.yaml:9:19: E001: unknown field "pathes"; did you mean "paths"?
	//       - {name: dns, pathes: ".spec.dnsNames[*]"}
	//                     ^~~~~~
	// indexes.yaml:10:55: E104: "=" is not a comparison; use "=="
	//       - {name: ready, path: '.status.conditions[?(@.type="Ready")].status'}
	//                                                         ^
}

// Different parts of a composite value never give the same value.
func ExampleValue() {
	fmt.Println(indexers.Value("gold"))
	fmt.Println(indexers.Value("payments", "gold"))
	fmt.Println(indexers.Value("a/b", "c"))
	// Output:
	// gold
	// payments/gold
	// a\/b/c
}

// Statistics show why an index has fewer values than expected.
func ExampleFunctions_Stats() {
	config, _ := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(exampleConfig)})
	functions := indexers.Compile(config.Resources[0])
	dns := functions.Indexers()["dns"]
	_, _ = dns(map[string]any{"spec": map[string]any{"dnsNames": []any{"a", map[string]any{}}}})
	_, _ = dns(map[string]any{})
	s := functions.Stats()[0]
	fmt.Println("seen", s.Seen, "matched", s.Matched, "missing", s.SkippedMissing, "type", s.SkippedType)
	// Output:
	// seen 2 matched 1 missing 1 type 1
}

// Keys of sorted and typed indexes are encoded; Key and Parts convert them.
func ExampleIndex_Key() {
	config, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(`apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: example}
spec:
  resources:
  - name: workloads
    match: {group: example.com, version: v1, resource: workloads}
    indexes:
    - {name: replicas, path: .spec.replicas, type: Int, order: Sorted}
`)})
	must(err)
	resource, _ := config.Resource("workloads")
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers.Compile(resource).Indexers())
	_ = indexer.Add(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "prod", "name": "web"},
		"spec":     map[string]any{"replicas": int64(8)},
	}})

	// {name: replicas, path: .spec.replicas, type: Int, order: Sorted}
	replicas, ok := resource.Index("replicas")
	key, err := replicas.Key("8")
	objects, _ := indexer.ByIndex("replicas", key)
	fmt.Println(ok, err, len(objects))
	objects, _ = indexer.ByIndex("replicas", "8") // a value, not a key
	fmt.Println(len(objects))
	fmt.Println(replicas.Parts(indexer.ListIndexFuncValues("replicas")[0]))
	_, err = replicas.Key("eight")
	fmt.Println(err)
	// Output:
	// true <nil> 1
	// 0
	// [8]
	// index "replicas": "eight" is not of type Int; write it like 42
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
