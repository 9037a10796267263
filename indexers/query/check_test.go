package query_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
)

// lampDefinition returns the CRD of lamps, which have a color and watts.
func lampDefinition() *crd.Definition {
	text := &crd.Schema{Type: "string"}
	spec := &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{"color": text,
		"watts": {Type: "number"}}}
	return &crd.Definition{
		Group: "example.com", Names: crd.Names{Plural: "lamps", Kind: "Lamp"},
		Versions: []crd.Version{{Name: "v1", Served: true, Schema: &crd.Schema{Type: "object",
			Properties: map[string]*crd.Schema{"spec": spec}}}},
	}
}

// TestPathsAreComparedWithTheSchema verifies that plans warn about paths that are not in the schema, and
// about paths that lead to lists or maps.
func TestPathsAreComparedWithTheSchema(t *testing.T) {
	withoutSchema := newCacheQuerier(t)
	withSchema := withoutSchema.WithDefinition(lampDefinition(), "v1")
	const (
		misspelled = ".spec.colour is not in lamps.example.com/v1; did you mean .spec.color?"
		container  = ".spec is a map, and only text, numbers and booleans are values; name one of its fields, or add .* for all values"
	)
	for _, test := range []struct {
		query   query.Query
		options query.Options
		groups  query.Aggregation
		want    []string
	}{
		{query.All(), query.Options{SortBy: ".spec.color, .spec.watts desc, name"}, query.Aggregation{}, nil},
		{query.All(), query.Options{SortBy: ".metadata.labels['a,b'] desc"},
			query.Aggregation{GroupBy: []string{"team", ".kind"}}, nil},
		{query.All(), query.Options{SortBy: ".spec.colour desc, name"}, query.Aggregation{},
			[]string{misspelled}},
		{query.Where(".spec.colour"), query.Options{SortBy: ".spec.colour"}, query.Aggregation{},
			[]string{misspelled}},
		{query.All(), query.Options{SortBy: ".spec"}, query.Aggregation{}, []string{container}},
		{query.All(), query.Options{}, query.Aggregation{GroupBy: []string{".spec.colour", "team"}},
			[]string{misspelled}},
		{query.All(), query.Options{},
			query.Aggregation{Measures: measures(t, "sum(.spec.watts)", "max(.spec)")}, []string{container}},
	} {
		test.options.AllowScan = true
		for _, querier := range []*query.Querier{withSchema, withoutSchema} {
			want := test.want
			if querier == withoutSchema {
				want = nil
			}
			plan, err := querier.Explain(test.query, test.options)
			noError(t, err)
			got := plan.Warnings
			if test.options.SortBy == "" {
				groups, err := querier.Aggregate(t.Context(), test.query, test.groups, test.options)
				noError(t, err)
				got = groups.Plan.Warnings
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("warnings of %s by %q, %v (-want +got):\n%s", test.query, test.options.SortBy,
					test.groups, diff)
			}
		}
	}
}

// TestCheckReportsUnknownFields verifies that conditions are compared with the schema at any depth of a
// query.
func TestCheckReportsUnknownFields(t *testing.T) {
	lamps := lampDefinition()
	parsed, err := query.Parse(`room=kitchen && !(label("a=b") || where(".spec.colour")) && where("@.spec.watts > 9")`)
	noError(t, err)
	q := query.And(parsed, query.Not(query.Where(`@.spec.watts == "9"`)))
	var got []string
	for _, d := range query.Check(q, lamps, "v1") {
		got = append(got, d.Source, d.Message)
	}
	want := []string{
		".spec.colour", ".spec.colour is not in lamps.example.com/v1",
		`@.spec.watts == "9"`, `.spec.watts is a number, and "9" is text: the comparison never holds`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
	if !query.UsesWhere(q) || query.UsesWhere(query.And(query.Eq("room", "hall"), query.Label("a"))) {
		t.Error("UsesWhere is not true for exactly the query with where")
	}
}

// TestNarrow verifies that a continue token of a narrowed query is valid for the same query without Narrow,
// and not for another one.
func TestNarrow(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	q := query.Exists("team")
	allKeys, err := querier.Keys(t.Context(), q, query.Options{})
	if err != nil || len(allKeys) < 3 {
		t.Fatalf("Keys = %v, %v; want at least 3", allKeys, err)
	}
	page, err := querier.Query(t.Context(), query.Narrow(query.Narrow(q, query.Label("example.com/team")),
		query.All()), query.Options{Limit: 1})
	if err != nil || page.Continue == "" {
		t.Fatalf("Query of a narrowed query = %v, %v; want a continue token", page, err)
	}
	rest, err := querier.Keys(t.Context(), q, query.Options{Continue: page.Continue})
	if err != nil || !slices.Equal(append(page.Keys(), rest...), allKeys) {
		t.Errorf("Keys after the page %v = %v, %v; want the rest of %v", page.Keys(), rest, err, allKeys)
	}
	if _, err := querier.Keys(t.Context(), query.And(q, query.All()),
		query.Options{Continue: page.Continue}); !errors.Is(err, query.ErrContinue) {
		t.Errorf("Keys of another query with the token: got the error %v, want ErrContinue", err)
	}
}

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
		noError(t, s.GetIndexer().Replace([]any{large}, "1"))
		querier := query.New(cacheSource{s}, f.Indexes()...)
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
