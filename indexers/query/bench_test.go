package query_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

func oneIndex(b testing.TB, text string) *indexers.Functions {
	b.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "x.yaml", Data: []byte(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: p}, spec: {resources: [
  {name: w, match: {group: example.com, kind: Widget}, indexes: [` + text + `]}]}}`)})
	if err != nil {
		b.Fatal(err)
	}
	return indexers.Compile(c.Resources[0])
}

// BenchmarkMatch matches single objects, as a subscription does for each event.
func BenchmarkMatch(b *testing.B) {
	matcher, err := query.NewMatcher(query.And(query.Eq("team", "edge"), query.Less("weight", "10")),
		functions(b).Indexes()...)
	if err != nil {
		b.Fatal(err)
	}
	var u *unstructured.Unstructured = simple("a/x", "edge", 3, "gold")
	b.ReportAllocs()
	for b.Loop() {
		if !matcher.Match(u) {
			b.Fatal("it does not hold")
		}
	}
}
