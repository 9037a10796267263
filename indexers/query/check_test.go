package query_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/query"
)

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
	blind := newCacheQuerier(t)
	querier := blind.WithDefinition(lampDefinition(), "v1")
	const (
		misspelt  = ".spec.colour is not in lamps.example.com/v1; did you mean .spec.color?"
		container = ".spec is a map, and only text, numbers and booleans are values; name one of its fields, or add .* for all values"
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
			[]string{misspelt}},
		{query.Where(".spec.colour"), query.Options{SortBy: ".spec.colour"}, query.Aggregation{},
			[]string{misspelt}},
		{query.All(), query.Options{SortBy: ".spec"}, query.Aggregation{}, []string{container}},
		{query.All(), query.Options{}, query.Aggregation{GroupBy: []string{".spec.colour", "team"}},
			[]string{misspelt}},
		{query.All(), query.Options{},
			query.Aggregation{Measures: measures(t, "sum(.spec.watts)", "max(.spec)")}, []string{container}},
	} {
		test.options.AllowScan = true
		for _, asked := range []*query.Querier{querier, blind} {
			want := test.want
			if asked == blind {
				want = nil
			}
			plan, err := asked.Explain(test.query, test.options)
			if err != nil {
				t.Fatal(err)
			}
			got := plan.Warnings
			if test.options.SortBy == "" {
				groups, err := asked.Aggregate(t.Context(), test.query, test.groups, test.options)
				if err != nil {
					t.Fatal(err)
				}
				got = groups.Plan.Warnings
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s by %q, %v (-want +got):\n%s", test.query, test.options.SortBy, test.groups, diff)
			}
		}
	}
}

// TestCheck verifies that conditions are compared with the schema at any depth of a query.
func TestCheck(t *testing.T) {
	lamps := lampDefinition()
	parsed, err := query.Parse(`room=kitchen && !(label("a=b") || where(".spec.colour")) && where("@.spec.watts > 9")`)
	if err != nil {
		t.Fatal(err)
	}
	asked := query.And(parsed, query.Not(query.Where(`@.spec.watts == "9"`)))
	var got []string
	for _, d := range query.Check(asked, lamps, "v1") {
		got = append(got, d.Source, d.Message)
	}
	want := []string{
		".spec.colour", ".spec.colour is not in lamps.example.com/v1",
		`@.spec.watts == "9"`, `.spec.watts is a number, and "9" is text: the comparison never holds`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !query.UsesWhere(asked) || query.UsesWhere(query.And(query.Eq("room", "hall"), query.Label("a"))) {
		t.Error("it is not known which query looks into objects")
	}
}

// TestNarrow verifies that a continue token of a narrowed query is valid for the same query without Narrow,
// and not for another one.
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
