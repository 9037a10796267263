package query_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
)

// TestCancelWithinOneObject verifies that a query whose context ends while it reads one large object stops
// within this object.
func TestCancelWithinOneObject(t *testing.T) {
	large := newWidget("a/w", "edge", 1, "gold")
	var list []any
	for range 50_000 {
		list = append(list, m{"n": int64(1)})
	}
	large.Object["spec"].(m)["list"] = list
	large.Object["spec"].(m)["class"] = strings.Repeat("ab", 50_000) // too long for the index
	for _, mode := range []dynamicinformer.StorageMode{dynamicinformer.StorageObject,
		dynamicinformer.StoragePacked} {
		f := functions(t)
		s := newCache(t, mode, f)
		if err := s.GetIndexer().Replace([]any{large}, "1"); err != nil {
			t.Fatal(err)
		}
		querier := query.New(query.CacheSource{Informer: s}, f.Indexes()...)
		options := query.Options{AllowScan: true}
		for name, runQuery := range map[string]func(context.Context) error{
			"where": func(ctx context.Context) error {
				_, err := querier.Count(ctx, query.Where("@.spec.list[?(@.n==2)]"), options)
				return err
			},
			"a path": func(ctx context.Context) error {
				_, err := querier.Count(ctx, query.Not(query.Where("..none")), options)
				return err
			},
			"sort": func(ctx context.Context) error {
				_, err := querier.Query(ctx, query.All(), query.Options{SortBy: ".spec.list[*].n",
					AllowScan: true})
				return err
			},
			"aggregate": func(ctx context.Context) error {
				_, err := querier.Aggregate(ctx, query.All(),
					query.Aggregation{Measures: measures(t, "max(.spec.list[*].n)")}, options)
				return err
			},
		} {
			if err := runQuery(t.Context()); err != nil {
				t.Fatalf("%v, %s: the query without a deadline failed: %v", mode, name, err)
			}
			if err := runQuery(&workCountingContext{Context: t.Context(), maxChecks: 20}); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Errorf("%v, %s: got the error %v, want DeadlineExceeded", mode, name, err)
			}
		}
	}
}

// TestRegularExpressionsAreBounded verifies that a large regular expression is rejected, and that matching a
// long text stops when the context ends.
func TestRegularExpressionsAreBounded(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	if _, err := querier.Count(t.Context(), query.Matches("team", "(?:(?:a?b?){30}){30}"),
		query.Options{}); err == nil || !strings.Contains(err.Error(), "shorten repetitions") {
		t.Errorf("Count with a large regular expression: got the error %v, want the advice to shorten it",
			err)
	}
	namespace := strings.Repeat("n", 100_000) // of an index without a limit
	querier = newCacheQuerier(t, newWidget(namespace+"/w", "edge", 1, "gold"))
	q := query.Matches("namespace", "n$")
	if n, err := querier.Count(t.Context(), q, query.Options{}); n != 1 || err != nil {
		t.Errorf("Count of %s = %d, %v; want 1", q, n, err)
	}
	if _, err := querier.Count(&workCountingContext{Context: t.Context(), maxChecks: 20}, q,
		query.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Count after the deadline: got the error %v, want DeadlineExceeded", err)
	}
}

// TestContextEndsAQuery verifies that a query with a canceled context returns the cause.
func TestContextEndsAQuery(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 3000 {
		objects = append(objects, newWidget(fmt.Sprintf("a/w%d", i), "edge", 1, "gold"))
	}
	querier := newCacheQuerier(t, objects...)
	errStopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStopped)
	for _, options := range []query.Options{{}, {SortBy: "weight"}} {
		if _, err := querier.Query(ctx, query.All(), options); !errors.Is(err, errStopped) {
			t.Errorf("Query with %+v: got the error %v, want %v", options, err, errStopped)
		}
	}
	if _, err := querier.Count(ctx, query.All(), query.Options{}); !errors.Is(err, errStopped) {
		t.Errorf("Count: got the error %v, want %v", err, errStopped)
	}
}
