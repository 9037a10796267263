package query_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
)

const exampleConfig = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: example}
spec:
  resources:
  - name: certs
    match: {group: cert-manager.io, version: v1, resource: certificates}
    indexes:
    - {name: issuer, path: .spec.issuerRef.name}
    - {name: expiry, path: .status.notAfter, type: Time, order: Sorted}
`

// exampleQuerier returns a querier over three certificates.
func exampleQuerier() *query.Querier {
	config, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(exampleConfig)})
	must(err)
	functions := indexers.Compile(config.Resources[0])
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, functions.Indexers())
	for _, c := range []struct{ name, issuer, expiry string }{
		{"shop", "letsencrypt", "2026-03-01T00:00:00Z"},
		{"docs", "letsencrypt", "2026-02-01T00:00:00Z"},
		{"mail", "internal", "2026-01-01T00:00:00Z"},
	} {
		_ = indexer.Add(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "prod", "name": c.name},
			"spec":     map[string]any{"issuerRef": map[string]any{"name": c.issuer}},
			"status":   map[string]any{"notAfter": c.expiry},
		}})
	}
	return query.New(query.ForIndexer(indexer), functions.Indexes()...)
}

func Example() {
	querier := exampleQuerier()
	q := query.And(query.Eq("issuer", "letsencrypt"), query.Less("expiry", "2026-12-31T00:00:00Z"))
	result, err := querier.Query(context.Background(), q, query.Options{SortBy: "expiry"})
	must(err)
	for key, object := range result.All() {
		notAfter, _, _ := unstructured.NestedString(object.Object, "status", "notAfter")
		fmt.Println(key, notAfter)
	}
	// Output:
	// prod/docs 2026-02-01T00:00:00Z
	// prod/shop 2026-03-01T00:00:00Z
}

// A parse error has a position and a remedy.
func ExampleParse() {
	q, err := query.Parse(`issuer in (letsencrypt, internal) && expiry>=2026-02-01T00:00:00Z`)
	fmt.Println(q, err)
	keys, err := exampleQuerier().Keys(context.Background(), q, query.Options{})
	fmt.Println(keys, err)
	_, err = query.Parse(`issuer=letsencrypt & expiry`)
	fmt.Println(err)
	// Output:
	// issuer in (letsencrypt, internal) && expiry>=2026-02-01T00:00:00Z <nil>
	// [prod/docs prod/shop] <nil>
	// query:20: '&' is not allowed here; expected &&, || or the end
}

func ExampleQuerier_Values() {
	values, _ := exampleQuerier().Values(context.Background(), "issuer", query.All(), query.Options{})
	for _, v := range values {
		fmt.Println(v.Value, v.Count)
	}
	// Output:
	// internal 1
	// letsencrypt 2
}

func ExampleQuerier_Explain() {
	q, _ := query.Parse(`expiry<2027-01-01T00:00:00Z && issuer=internal && where("@.spec.issuerRef")`)
	plan, err := exampleQuerier().Explain(q, query.Options{})
	must(err)
	fmt.Print(plan)
	// Output:
	// query  expiry<2027-01-01T00:00:00Z && issuer=internal && where("@.spec.issuerRef")
	// start  issuer=internal: at most 1 of 3 objects
	// check  expiry<2027-01-01T00:00:00Z
	// read   where("@.spec.issuerRef")
	// order  namespace, name
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// The error of a query that reads a dropped field marks the field.
func ExampleDroppedFieldError() {
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{},
		Defaults: dynamicinformer.ResourceOptions{Keep: dynamicinformer.Keep{Paths: []string{".spec.class"}}}})
	must(err)
	informer, err := factory.ForResource(widgets)
	must(err)
	q, err := query.Parse(`where('@.spec.class == "gold" && @.spec.size == 2')`)
	must(err)
	querier := query.New(bind.ForInformer(informer))
	_, err = querier.Count(context.Background(), q, query.Options{AllowScan: true})
	var located *query.Error
	if errors.As(err, &located) {
		fmt.Println(located.Caret())
	}
	// Output:
	// where('@.spec.class == "gold" && @.spec.size == 2')
	//                                   ^~~~~~~~~~
}
