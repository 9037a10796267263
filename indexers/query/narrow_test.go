package query_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/crdcache/crdcache/indexers/query"
)

// A continue token of a narrowed query is valid for the same query without Narrow, and not for another one.
func TestNarrow(t *testing.T) {
	querier := newCacheQuerier(t, someObjects()...)
	q := query.Exists("team")
	all, err := querier.Keys(t.Context(), q, query.Options{})
	if err != nil || len(all) < 3 {
		t.Fatal(all, err)
	}
	page, err := querier.Query(t.Context(), query.Narrow(query.Narrow(q, query.Label("example.com/team")),
		query.All()), query.Options{Limit: 1})
	if err != nil || page.Continue == "" {
		t.Fatal(page, err)
	}
	rest, err := querier.Keys(t.Context(), q, query.Options{Continue: page.Continue})
	if err != nil || !slices.Equal(append(page.Keys(), rest...), all) {
		t.Errorf("after %v got %v, %v, of %v", page.Keys(), rest, err, all)
	}
	if _, err := querier.Keys(t.Context(), query.And(q, query.All()),
		query.Options{Continue: page.Continue}); !errors.Is(err, query.ErrContinue) {
		t.Errorf("another query accepts the token: %v", err)
	}
}
