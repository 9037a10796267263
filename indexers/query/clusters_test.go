package query_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// clustersOf returns a querier for each cluster. Its certificates expire on the given days of January 2026.
func clustersOf(t *testing.T, days map[string][]int) query.Clusters {
	t.Helper()
	config, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(exampleConfig)})
	if err != nil {
		t.Fatal(err)
	}
	functions := indexers.Compile(config.Resources[0])
	clusters := query.Clusters{}
	for cluster, days := range days {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, functions.Indexers())
		for _, day := range days {
			if err := indexer.Add(&unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": fmt.Sprint("cert-", day)},
				"spec":     map[string]any{"issuerRef": map[string]any{"name": fmt.Sprint("issuer-", day%2)}},
				"status":   map[string]any{"notAfter": fmt.Sprintf("2026-01-%02dT00:00:00Z", day)},
			}}); err != nil {
				t.Fatal(err)
			}
		}
		clusters[cluster] = query.New(query.ForIndexer(indexer), functions.Indexes()...)
	}
	return clusters
}

// TestClustersArePaged verifies that pages of any size have all objects in order: by cluster, then by expiry.
func TestClustersArePaged(t *testing.T) {
	clusters := clustersOf(t, map[string][]int{"b/x": {4, 1}, "a": {3, 9, 5}, "c": nil, "d": {2}, "e": {20}})
	want := []string{"a cert-3", "a cert-5", "a cert-9", "b/x cert-1", "b/x cert-4", "d cert-2"}
	q := query.Less("expiry", "2026-01-15T00:00:00Z")
	for limit := range 8 {
		options := query.Options{SortBy: "expiry", Limit: limit}
		var got []string
		for pages := 0; ; pages++ {
			results, next, err := clusters.Query(t.Context(), q, options)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, r := range results {
				found += r.Len()
				for key := range r.All() {
					got = append(got, r.Cluster+" "+key)
				}
			}
			if limit > 0 && (found > limit || found == 0 || next != "" && found < limit) {
				t.Errorf("limit %d: a page has %d objects, and the next token is %q", limit, found, next)
			}
			if options.Continue = next; next == "" || pages > len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: all pages = %q, want %q", limit, got, want)
		}
	}
	_, next, err := clusters.Query(t.Context(), q, query.Options{SortBy: "expiry", Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	delete(clusters, "b/x") // between two pages
	results, _, err := clusters.Query(t.Context(), q, query.Options{SortBy: "expiry", Limit: 4, Continue: next})
	if err != nil || len(results) == 0 || !slices.Equal(results[len(results)-2].Keys(), []string{"cert-2"}) {
		t.Errorf("Query after a cluster was removed = %v, %v; want the objects of the others", results, err)
	}
}

func TestClustersAreCountedAndGrouped(t *testing.T) {
	clusters := clustersOf(t, map[string][]int{"b": {1, 2, 3}, "a": {2}, "c": nil})
	counts, err := clusters.Count(t.Context(), query.Eq("issuer", "issuer-1"), query.Options{})
	if err != nil || counts["a"] != 0 || counts["b"] != 2 || len(counts) != 3 {
		t.Errorf("Count() = %v, %v; want a: 0, b: 2, c: 0", counts, err)
	}
	groups, err := clusters.Aggregate(t.Context(), query.All(), query.Aggregation{GroupBy: []string{"issuer"}},
		query.Options{})
	var got []string
	for _, g := range groups {
		got = append(got, fmt.Sprint(strings.Join(g.Values, " "), " ", g.Count))
	}
	if want := []string{"a issuer-0 1", "b issuer-0 1", "b issuer-1 2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Aggregate() = %q, %v; want %q", got, err, want)
	}
	_, _, err = clusters.Query(t.Context(), query.Eq("colour", "red"), query.Options{})
	if unknown := (*query.UnknownIndexError)(nil); !errors.As(err, &unknown) ||
		!strings.Contains(err.Error(), `cluster "a"`) {
		t.Errorf("the error of an unknown index is %v, want one that names the cluster", err)
	}
	for _, token := range []string{"nothing", "a/nothing"} {
		_, _, err := clusters.Query(t.Context(), query.All(), query.Options{Continue: token})
		if !errors.Is(err, query.ErrContinue) {
			t.Errorf("the token %q: got the error %v, want ErrContinue", token, err)
		}
	}
}
