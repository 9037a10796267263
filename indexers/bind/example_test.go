package bind_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

const exampleConfig = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: example}
spec:
  resources:
  - name: widgets
    match: {group: example.com, kind: Widget}
    indexes:
    - {name: color, path: .spec.color}
    - {name: size, path: .spec.size, type: Int, order: Sorted}
`

// cluster returns a test cluster with the type widgets and three objects.
func cluster() *testcluster.Cluster {
	cluster, err := testcluster.New(context.Background(),
		testcluster.Options{WithoutBuiltIns: true, Types: []readapi.Type{{
			Names: crd.Names{Plural: "namespaces", Kind: "Namespace"}, Versions: []readapi.Version{{Name: "v1"}},
		}}})
	must(err)
	for _, text := range []string{
		definition("example.com", "widgets", "Widget"),
		widget("lamp", "red", 7), widget("chair", "red", 3), widget("table", "blue", 12),
	} {
		apply(cluster, text)
	}
	return cluster
}

// definition returns the CRD of a type with the fields color and size.
func definition(group, plural, kind string) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[2]s.%[1]s}, spec: {
  group: %[1]s, scope: Namespaced, names: {plural: %[2]s, kind: %[3]s},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
    spec: {type: object, properties: {color: {type: string}, size: {type: integer}}}}}}}]}}`, group, plural, kind)
}

func widget(name, color string, size int) string {
	return fmt.Sprintf(
		`{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: home, name: %s}, spec: {color: %s, size: %d}}`, name, color, size)
}

// apply creates or replaces an object in a cluster.
func apply(cluster *testcluster.Cluster, text string) {
	var object map[string]any
	must(yaml.Unmarshal([]byte(text), &object))
	must(cluster.Load(context.Background(), &unstructured.Unstructured{Object: object}))
}

// Load a config, run it, query.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(exampleConfig)})
	must(err)
	binding, err := bind.Run(ctx, cluster().Config(), config)
	must(err)

	widgets, err := binding.Querier("widgets")
	must(err)
	red, err := widgets.ByIndex("color", "red")
	fmt.Println(red.Keys(), err)
	large, err := widgets.Keys(context.Background(), query.Range("size", "5", ""), query.Options{SortBy: "size"})
	fmt.Println(large, err)
	// Output:
	// [home/chair home/lamp] <nil>
	// [home/lamp home/table] <nil>
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
