package query_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// formatGroups returns a line for each group: its values, its count, and for each measure the result, the
// number of values and the number of skipped values.
func formatGroups(a *query.AggregateResult) []string {
	out := []string{}
	for _, g := range a.Groups {
		line := fmt.Sprintf("%q %d", g.Values, g.Count)
		for _, r := range g.Results {
			line += fmt.Sprintf(" %s/%d/%d", r.Value, r.Values, r.Skipped)
		}
		out = append(out, line)
	}
	return out
}

// measures parses measures.
func measures(t testing.TB, texts ...string) (out []query.Measure) {
	t.Helper()
	for _, text := range texts {
		m, err := query.ParseMeasure(text)
		if err != nil || m.String() != text {
			t.Fatalf("ParseMeasure(%q) = %v, %v", text, m, err)
		}
		out = append(out, m)
	}
	return out
}

func TestAggregate(t *testing.T) {
	objects := testObjects()
	for i, size := range []string{"1Gi", "512Mi", "", "2"} {
		spec := objects[i].Object["spec"].(m)
		if size != "" {
			spec["size"] = size
		}
		spec["weights"] = []any{int64(i), int64(i), 0.1}
		spec["ttl"] = []string{"1h", "30m", "soon", "2h"}[i]
	}
	querier := newCacheQuerier(t, objects...)
	for _, test := range []struct {
		reason string
		query  query.Query
		groups query.Aggregation
		want   []string
	}{
		{"all objects are one group", query.All(), query.Aggregation{Measures: measures(t, "sum(weight)",
			"avg(weight)", "min(weight)", "max(.spec.size)")},
			[]string{`[] 4 27/4/0 6.75/4/0 -1/4/0 1Gi/3/0`}},
		{"no objects", query.Eq("team", "none"), query.Aggregation{Measures: measures(t, "sum(weight)",
			"max(weight)")}, []string{`[] 0 /0/0 /0/0`}},
		{"no objects, grouped", query.Eq("team", "none"), query.Aggregation{GroupBy: []string{"team"}},
			[]string{}},
		{"by an index and a path, without a value last", query.All(),
			query.Aggregation{GroupBy: []string{"team", ".spec.class"}, Measures: measures(t, "sum(weight)")},
			[]string{`["core" "\x00"] 1 9/1/0`, `["edge" "gold"] 2 19/2/0`, `["edge" "silver"] 1 -1/1/0`}},
		{"by numbers in their order", query.All(), query.Aggregation{GroupBy: []string{"weight"}},
			[]string{`["-1"] 1`, `["9"] 2`, `["10"] 1`}},
		{"by a composite index", query.Eq("team", "edge"), query.Aggregation{GroupBy: []string{"ordered"}},
			[]string{`["gold/9"] 1`, `["gold/10"] 1`, `["silver/-1"] 1`}},
		{"by namespace", query.All(), query.Aggregation{GroupBy: []string{"namespace"}},
			[]string{`["a"] 2`, `["a-b"] 1`, `["b"] 1`}},
		{"quantities and fractions are exact", query.All(),
			query.Aggregation{Measures: measures(t, "sum(size)", "sum(.spec.size)", "sum(.spec.weights[*])",
				"avg(.spec.weights[*])", "avg(.spec.size)")},
			[]string{
				`[] 4 1610612738/3/0 1610612738/3/0 12.4/12/0 1.0333333333333334/12/0 536870912.6666666/3/0`}},
		{"values that are not numbers are skipped", query.All(),
			query.Aggregation{Measures: measures(t, "sum(.spec.class)", "sum(.spec.ttl as duration)",
				"max(.spec.ttl as duration)", "max(.spec.class)")},
			[]string{`[] 4 /0/3 3h30m0s/3/1 2h/3/1 silver/3/0`}},
		{"by equal values of a path, an object counts once", query.All(),
			query.Aggregation{GroupBy: []string{".spec.weights[*]", ".spec.class"},
				Measures: measures(t, "sum(.spec.weights[*])")},
			[]string{`["0" "gold"] 1 0.1/3/0`, `["0.1" "gold"] 2 2.2/6/0`, `["0.1" "silver"] 1 6.1/3/0`,
				`["0.1" "\x00"] 1 4.1/3/0`, `["1" "gold"] 1 2.1/3/0`, `["2" "\x00"] 1 4.1/3/0`,
				`["3" "silver"] 1 6.1/3/0`}},
		{"objects that match a condition", query.Where("@.spec.weight == 9"), query.Aggregation{GroupBy: []string{"team"},
			Measures: measures(t, "sum(weight)")}, []string{`["core"] 1 9/1/0`, `["edge"] 1 9/1/0`}},
	} {
		got, err := querier.Aggregate(t.Context(), test.query, test.groups, query.Options{AllowScan: true})
		if err != nil {
			t.Errorf("%s: Aggregate: %v", test.reason, err)
			continue
		}
		if diff := gocmp.Diff(test.want, formatGroups(got)); diff != "" {
			t.Errorf("%s: groups (-want +got):\n%s", test.reason, diff)
		}
	}
}

func TestAggregateErrors(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	var unknown *query.UnknownIndexError
	if _, err := querier.Aggregate(t.Context(), query.All(), query.Aggregation{GroupBy: []string{"nope"}},
		query.Options{}); !errors.As(err, &unknown) {
		t.Errorf("Aggregate by an unknown index: got the error %v, want an UnknownIndexError", err)
	}
	for _, invalid := range []query.Aggregation{
		{GroupBy: []string{".spec["}}, {Measures: []query.Measure{{Function: "sum",
			Operand: "expiry"}}}, {Measures: []query.Measure{{Function: "median", Operand: "weight"}}},
		{Measures: []query.Measure{{Function: "sum"}}},
	} {
		if _, err := querier.Aggregate(t.Context(), query.All(), invalid, query.Options{}); err == nil {
			t.Errorf("Aggregate(%+v) returned no error", invalid)
		}
	}
	var scan *query.ScanError
	if _, err := querier.Aggregate(t.Context(), query.Missing("class"), query.Aggregation{},
		query.Options{}); !errors.As(err, &scan) {
		t.Errorf("Aggregate that needs a scan: got the error %v, want a ScanError", err)
	}
	for _, text := range []string{"", "weight", "sum", "sum(", "sum()", "count(weight)", "sum(a"} {
		if m, err := query.ParseMeasure(text); err == nil {
			t.Errorf("ParseMeasure(%q) = %v, want an error", text, m)
		}
	}
	u := newWidget("a/x", "edge", 1, "gold")
	var many []any
	for i := range 200 {
		many = append(many, strconv.Itoa(i))
	}
	u.Object["spec"].(m)["list"] = many
	by := query.Aggregation{GroupBy: []string{".spec.list[*]", ".spec.list[*]"}}
	if _, err := newCacheQuerier(t, u).Aggregate(t.Context(), query.All(), by, query.Options{}); err == nil ||
		!strings.Contains(err.Error(), "a/x has too many values") {
		t.Errorf("Aggregate of 200 times 200 values: got the error %v, want one about too many values of a/x",
			err)
	}
}

func TestAggregateTypedValues(t *testing.T) {
	f := compileIndexes(
		t, "{name: ttl, path: .spec.ttl, type: Duration}, {name: at, path: .spec.at, type: Time}, {name: version, path: .spec.version, type: SemVer, order: Sorted}")
	var objects []*unstructured.Unstructured
	for i, spec := range []m{{"ttl": "1h", "at": "2026-01-01T00:00:00+01:00", "version": "1.10.0"},
		{"ttl": "1d", "at": "2026-01-01T00:00:00Z", "version": "1.9.0"}, {"ttl": "30m"}} {
		objects = append(objects,
			&unstructured.Unstructured{Object: m{"metadata": m{"name": fmt.Sprint("x", i)}, "spec": spec}})
	}
	for _, mode := range modes {
		cached := newCache(t, mode, f)
		put(t, cached, objects...)
		querier := query.New(cacheSource{cached}, f.Indexes()...)
		got, err := querier.Aggregate(t.Context(), query.All(),
			query.Aggregation{Measures: measures(t, "sum(ttl)", "avg(ttl)", "min(ttl)", "max(ttl)", "min(at)",
				"max(version)")}, query.Options{})
		noError(t, err)
		want := []string{
			"[] 3 25h30m0s/3/0 8h30m0s/3/0 30m0s/3/0 24h0m0s/3/0 2025-12-31T23:00:00Z/2/0 1.10.0/2/0"}
		if diff := gocmp.Diff(want, formatGroups(got)); diff != "" {
			t.Errorf("%v: groups (-want +got):\n%s", mode, diff)
		}
	}
}

// TestAggregateMatchesModel verifies that random aggregations equal those that expectedGroups computes
// without indexes.
func TestAggregateMatchesModel(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 42))
	f := functions(t)
	for range 40 {
		var objects []*unstructured.Unstructured
		for n := range 1 + random.IntN(60) {
			objects = append(objects, randomWidget(random, n))
		}
		cached := newCache(t, dynamicinformer.StoragePacked, f)
		put(t, cached, objects...)
		for _, querier := range []*query.Querier{newCacheQuerier(t, objects...),
			query.New(cacheSource{cached}, f.Indexes()...)} {
			q, holds := randomQuery(random, 1)
			groupBy := [][]string{nil, {"host"}, {"team", "class"}, {".spec.class"}, {"weights", "namespace"},
				{".metadata.labels.tier", "host"}}[random.IntN(6)]
			got, err := querier.Aggregate(t.Context(), q, query.Aggregation{GroupBy: groupBy,
				Measures: measures(t,
					"sum(weight)", "sum(.spec.weights[*])")}, query.Options{AllowScan: true, Now: modelNow})
			if err != nil {
				t.Fatalf("Aggregate of %s: %v", q, err)
			}
			text := formatGroups(got)
			slices.Sort(text)
			if diff := gocmp.Diff(expectedGroups(objects, holds, groupBy), text); diff != "" {
				t.Fatalf("groups of %s by %v (-want +got):\n%s", q, groupBy, diff)
			}
		}
	}
}

// expectedGroups returns the groups of the objects for which holds is true, as formatGroups writes them. It
// uses no indexes.
func expectedGroups(objects []*unstructured.Unstructured, holds predicate, groupBy []string) []string {
	type sums struct{ count, weightSum, weightsSum, weightCount, weightsCount int }
	groups := map[string]*sums{}
	if len(groupBy) == 0 {
		groups["[]"] = &sums{}
	}
	for _, u := range objects {
		if !holds(u) {
			continue
		}
		combinations := [][]string{{}}
		for _, name := range groupBy {
			var next [][]string
			for _, before := range combinations {
				for _, v := range groupValues(u, name) {
					next = append(next, append(slices.Clone(before), v))
				}
			}
			combinations = next
		}
		for _, values := range combinations {
			id := fmt.Sprintf("%q", values)
			if groups[id] == nil {
				groups[id] = &sums{}
			}
			g := groups[id]
			g.count++
			if w, ok, _ := unstructured.NestedInt64(u.Object, "spec", "weight"); ok {
				g.weightSum, g.weightCount = g.weightSum+int(w), g.weightCount+1
			}
			for _, w := range specList(u, "weights") {
				g.weightsSum, g.weightsCount = g.weightsSum+int(w.(int64)), g.weightsCount+1
			}
		}
	}
	out := []string{}
	for id, g := range groups {
		formatSum := func(sum, n int) string { return map[bool]string{true: strconv.Itoa(sum)}[n > 0] }
		out = append(out, fmt.Sprintf("%s %d %s/%d/0 %s/%d/0", id, g.count, formatSum(g.weightSum, g.weightCount),
			g.weightCount, formatSum(g.weightsSum, g.weightsCount), g.weightsCount))
	}
	slices.Sort(out)
	return out
}

// groupValues returns the distinct values of an object in an index or at a path, or Null if it has none.
func groupValues(u *unstructured.Unstructured, name string) (values []string) {
	add := func(v string, ok bool) {
		if ok && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	switch name {
	case "team":
		v, ok := u.GetLabels()["example.com/team"]
		add(v, ok)
	case ".metadata.labels.tier":
		v, ok := u.GetLabels()["tier"]
		add(v, ok)
	case "class", ".spec.class":
		add(stringAt(u, "spec", "class"))
	case "namespace":
		add(u.GetNamespace(), true)
	case "host":
		for _, h := range specList(u, "hosts") {
			add(strings.ToLower(h.(string)), true)
		}
	case "weights":
		for _, w := range specList(u, "weights") {
			add(fmt.Sprint(w), true)
		}
	}
	if len(values) == 0 {
		return []string{indexers.Null}
	}
	return values
}
