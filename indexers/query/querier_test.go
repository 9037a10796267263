package query_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// newWidget returns a widget with a label, a weight and a class.
func newWidget(key, team string, weight int64, class any) *unstructured.Unstructured {
	ns, name, _ := strings.Cut(key, "/")
	return &unstructured.Unstructured{Object: m{
		"metadata": m{"namespace": ns, "name": name, "labels": m{"example.com/team": team}},
		"spec":     m{"weight": weight, "class": class},
	}}
}

func testObjects() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		newWidget("b/x", "edge", 10, "gold"), newWidget("a/y", "edge", 9, "gold"), newWidget("a/x", "core", 9, nil),
		newWidget("a-b/x", "edge", -1, "silver"),
	}
}

// TestScansNeedPermission verifies that a query that has to read all objects fails without AllowScan.
func TestScansNeedPermission(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	for text, allowed := range map[string]bool{
		"team=edge": true, "*": true, "!*": true, "team=edge && !class": true, "team=edge || weight>5": true,
		"team=none || !(team=none)": false, "!class": false, "team!=edge": false,
		"label('example.com/team=edge')": true,
		"label('example.com/team')":      false, "!label('example.com/team=edge')": false,
		"label('tier=edge') || team=edge": true, "label('other=edge')": false,
		"where(.spec.weight)": false, "team=edge || where(.spec.weight)": false,
	} {
		q, err := query.Parse(text)
		noError(t, err)
		_, err = querier.Query(t.Context(), q, query.Options{})
		var scan *query.ScanError
		if errors.As(err, &scan) == allowed || allowed && err != nil {
			t.Errorf("Query of %s without AllowScan: got the error %v, want it to succeed: %v", text, err,
				allowed)
		}
		if _, err := querier.Query(t.Context(), q, query.Options{AllowScan: true}); err != nil {
			t.Errorf("Query of %s with AllowScan: %v", text, err)
		}
		if plan, err := querier.Explain(q, query.Options{}); err != nil || text != "*" &&
			plan.Scan == allowed {
			t.Errorf("Explain(%s) = %+v, %v; want Scan %v", text, plan, err, !allowed)
		}
	}
}

// TestLabelSelectorsUseIndexes verifies that a label selector starts with an index over one of its labels, if
// this index has all selected objects.
func TestLabelSelectorsUseIndexes(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 100 {
		u := newWidget(fmt.Sprintf("ns/w%02d", i), []string{"edge", "payments"}[i/90], int64(i), "gold")
		u.SetLabels(map[string]string{"example.com/team": u.GetLabels()["example.com/team"],
			"tier": []string{"web", "wax", "db"}[i%3]})
		objects = append(objects, u)
	}
	querier := newCacheQuerier(t, objects...)
	for selector, want := range map[string][]query.Step{
		"example.com/team=edge": {{Query: "short=edge", Objects: 90}},
		// too long for the index short
		"example.com/team=payments":              {{Query: "team=payments", Objects: 10}},
		"example.com/team in (payments, none)":   {{Query: "team in (none, payments)", Objects: 10}},
		"tier=web":                               {{Query: "tier=W", Objects: 67}}, // also has other objects
		"tier in (web,wax),example.com/team==x":  {{Query: "short=x", Objects: 0}},
		"tier=db,example.com/team":               {{Query: "tier=D", Objects: 33}},
		"example.com/team!=payments":             nil,
		"example.com/team":                       nil,
		"!example.com/team":                      nil,
		"other=edge":                             nil,
		"example.com/team=edge,other notin (no)": {{Query: "short=edge", Objects: 90}},
	} {
		plan, err := querier.Explain(query.Label(selector), query.Options{})
		if err != nil || plan.Scan != (want == nil) {
			t.Errorf("Explain of the selector %s = %v, %v; want Scan %v", selector, plan, err, want == nil)
			continue
		}
		if diff := cmp.Diff(want, plan.Start); diff != "" {
			t.Errorf("start of the selector %s (-want +got):\n%s", selector, diff)
		}
		if want != nil && !slices.Equal(plan.Checks, []string{query.Label(selector).String()}) {
			t.Errorf("plan of the selector %s = %v, want a check of the selector", selector, plan)
		}
	}
}

func TestExplain(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 100 {
		objects = append(objects, newWidget(fmt.Sprintf("ns%d/w%02d", i%2, i), []string{"edge", "core"}[i/90],
			int64(i), "gold"))
	}
	querier := newCacheQuerier(t, objects...)
	q, err := query.Parse(`where(".spec.class") && label("x") && weight>10 && team=core && namespace=ns1`)
	noError(t, err)
	plan, err := querier.Explain(q, query.Options{SortBy: "weight", Descending: true})
	noError(t, err)
	want := `query  where(".spec.class") && label("x") && weight>10 && team=core && namespace=ns1
start  team=core: at most 10 of 100 objects
check  namespace=ns1
check  label("x")
check  weight>10
read   where(".spec.class")
order  weight descending, namespace, name
sort   along weight
`
	if diff := cmp.Diff(want, plan.String()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	r, err := querier.Query(t.Context(), query.And(query.Eq("team", "core"), query.Namespace("ns1")),
		query.Options{})
	if err != nil || r.Plan.Found != 5 || !strings.Contains(r.Plan.String(), "found  5 objects") {
		t.Errorf("Query = %v, %v; want a plan with 5 found objects", r.Plan, err)
	}
}

func TestValues(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	for _, test := range []struct {
		index string
		query query.Query
		want  []query.ValueCount
	}{
		{"team", query.All(), []query.ValueCount{{"core", []string{"core"}, 1},
			{"edge", []string{"edge"}, 3}}},
		{"weight", query.All(), []query.ValueCount{{"-1", []string{"-1"}, 1}, {"9", []string{"9"}, 2},
			{"10", []string{"10"}, 1}}},
		{"weight", query.Eq("team", "edge"), []query.ValueCount{{"-1", []string{"-1"}, 1},
			{"9", []string{"9"}, 1}, {"10", []string{"10"}, 1}}},
		{"class", query.All(), []query.ValueCount{{indexers.Null, []string{indexers.Null}, 1},
			{"gold", []string{"gold"}, 2}, {"silver", []string{"silver"}, 1}}},
		{"ordered", query.Eq("class", "gold"), []query.ValueCount{{"gold/9", []string{"gold", "9"}, 1},
			{"gold/10", []string{"gold", "10"}, 1}}},
		{"namespace", query.Or(), nil},
	} {
		got, err := querier.Values(t.Context(), test.index, test.query, query.Options{})
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("Values(%s) of %v: %v (-want +got):\n%s", test.index, test.query, err, diff)
		}
		for _, v := range got { // the texts of values can be used in queries
			if v.Value == indexers.Null {
				continue
			}
			q, err := query.Parse(test.index + "='" + v.Value + "'")
			noError(t, err)
			if n, err := querier.Count(t.Context(), query.And(q, test.query), query.Options{}); err != nil ||
				n != v.Count {
				t.Errorf("Count of %s = %d, %v; want %d", q, n, err, v.Count)
			}
		}
	}
}

// TestContinueTokens verifies that a continue token is valid only for its query and order.
func TestContinueTokens(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	options := query.Options{Limit: 1, SortBy: "weight"}
	r, err := querier.Query(t.Context(), query.All(), options)
	if err != nil || r.Continue == "" {
		t.Fatalf("Query = %v, %v; want a continue token", r, err)
	}
	options.Continue = r.Continue
	if _, err := querier.Query(t.Context(), query.Eq("team", "edge"), options); !errors.Is(err,
		query.ErrContinue) {
		t.Errorf("another query with the token: got the error %v, want ErrContinue", err)
	}
	options.SortBy = "ordered"
	if _, err := querier.Query(t.Context(), query.All(), options); !errors.Is(err, query.ErrContinue) {
		t.Errorf("another order with the token: got the error %v, want ErrContinue", err)
	}
	for _, text := range []string{"x", "e30", "!"} {
		if _, err := querier.Query(t.Context(), query.All(), query.Options{Continue: text}); !errors.Is(err,
			query.ErrContinue) {
			t.Errorf("Query with the token %q: got the error %v, want ErrContinue", text, err)
		}
	}
}

func TestQueryErrors(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	var unknown *query.UnknownIndexError
	if _, err := querier.ByIndex("nope", "x"); !errors.As(err, &unknown) ||
		!slices.Contains(unknown.Known, "team") || !slices.IsSorted(unknown.Known) {
		t.Errorf("ByIndex of an unknown index: got the error %v, want an UnknownIndexError with sorted names",
			err)
	}
	if _, err := querier.Query(t.Context(), query.All(), query.Options{SortBy: "nope"}); !errors.As(err,
		&unknown) {
		t.Errorf("Query sorted by an unknown index: got the error %v, want an UnknownIndexError", err)
	}
	var unsorted *query.UnsortedError
	if _, err := querier.Query(t.Context(), query.All(), query.Options{SortBy: "team"}); !errors.As(err,
		&unsorted) {
		t.Errorf("Query sorted by an unsorted index: got the error %v, want an UnsortedError", err)
	}
	for _, q := range []query.Query{query.Label("a in ("), query.Where("@.a ="), query.And(nil)} {
		if _, err := querier.Query(t.Context(), q, query.Options{AllowScan: true}); err == nil {
			t.Errorf("Query of an invalid %T returned no error", q)
		}
	}
	for _, options := range []query.Options{{Limit: -1}, {Descending: true}} {
		if _, err := querier.Query(t.Context(), query.All(), options); err == nil {
			t.Errorf("Query with %+v returned no error", options)
		}
	}
}

// TestResultMethods verifies that Get and the methods of a result return the same objects in the same order.
func TestResultMethods(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	if u, ok := querier.Get("a/y"); !ok || u.GetName() != "y" {
		t.Errorf("Get(a/y) = %v, %v; want the object", u, ok)
	}
	if _, ok := querier.Get("a/none"); ok {
		t.Error("Get(a/none) found an object, want none")
	}
	r, err := querier.Query(t.Context(), query.Range("weight", "9", "11"), query.Options{SortBy: "weight"})
	if err != nil || !slices.Equal(r.Keys(), []string{"a/x", "a/y", "b/x"}) || !r.Freshness.Synced {
		t.Errorf("Query = %v, %v; want a/x, a/y and b/x from a synced source", r, err)
	}
	i := 0
	for k, u := range r.All() {
		if k != r.Keys()[i] || keyOf(u) != k || r.Objects()[i] != u {
			t.Errorf("All yields %s as number %d, want the order of Keys and Objects", k, i)
		}
		i++
	}
	if r, err := querier.Query(t.Context(), query.Prefix("place", "a"), query.Options{}); err != nil ||
		!slices.Equal(r.Keys(), []string{"a/y"}) {
		t.Errorf("Query of a prefix = %v, %v; want a/y", r, err)
	}
	now := time.Now()
	if age := (query.Freshness{LastContact: now.Add(-time.Minute)}).Age(now); age != time.Minute {
		t.Errorf("Age after a minute = %v, want 1m", age)
	}
	if age := (query.Freshness{}).Age(now); age != 0 {
		t.Errorf("Age without contact = %v, want 0", age)
	}
}

// TestTransformedOperands verifies that operands are transformed like the values of the index.
func TestTransformedOperands(t *testing.T) {
	u := newWidget("a/x", "edge", 1, "gold")
	u.Object["spec"].(m)["hosts"] = []any{"Archive.example.com"}
	u.SetLabels(map[string]string{"tier": "web"})
	querier := newCacheQuerier(t, u)
	for _, text := range []string{
		"host=ARCHIVE.EXAMPLE.COM", "host in (x, Archive.Example.com)", "host^=ARCH", "host>=ARCHIVE",
		"host in [ARCHIVE, ARCHIVF)", "host<ARCHIVF",
		"tier=w", "tier=W",
	} {
		q, err := query.Parse(text)
		noError(t, err)
		if n, err := querier.Count(t.Context(), q, query.Options{}); n != 1 || err != nil {
			t.Errorf("Count of %s = %d, %v; want 1", text, n, err)
		}
		matcher, err := query.NewMatcher(q, functions(t).Indexes()...)
		noError(t, err)
		if matches, err := matcher.Match(u); !matches || err != nil {
			t.Errorf("the matcher of %s does not match the object: %v", text, err)
		}
	}
}

// TestTextOrderOfNumbersWarns verifies that comparing an index without a type with a quantity or a number
// warns.
func TestTextOrderOfNumbersWarns(t *testing.T) {
	c, err := indexers.Parse(indexers.Source{Name: "x.yaml", Data: []byte(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: p}, spec: {resources: [
  {name: w, match: {group: example.com, kind: Widget}, indexes: [
    {name: memory, path: .spec.memory, order: Sorted}, {name: typed, path: .spec.memory, type: Quantity, order: Sorted}, {name: text, path: .spec.memory, type: String, order: Sorted}]}]}}`)})
	noError(t, err)
	f := indexers.Compile(c.Resources[0])
	querier := query.New(query.ForIndexer(cache.NewIndexer(cache.MetaNamespaceKeyFunc, f.Indexers())),
		f.Indexes()...)
	for text, typ := range map[string]string{
		"memory<1Gi": "Quantity", "memory=1Gi": "Quantity", "memory in [500m, 2)": "Quantity",
		"memory>9": "Number", "memory>1h30m": "Duration", "memory<1.2.3": "SemVer",
		"memory=9": "", "memory=5m": "", "memory^=1Gi": "", "memory contains 9": "", `memory=~"9"`: "",
		"memory<apple": "", "typed<1Gi": "", "text<1Gi": "", "memory": "",
	} {
		q, err := query.Parse(text)
		noError(t, err)
		r, err := querier.Query(t.Context(), q, query.Options{})
		noError(t, err)
		warned := typ != "" && len(r.Plan.Warnings) == 1 && strings.HasSuffix(r.Plan.Warnings[0],
			"declare type: "+typ) && strings.Contains(r.Plan.String(), "warn   index")
		if !warned && (typ != "" || len(r.Plan.Warnings) > 0) {
			t.Errorf("warnings of %s = %q, want the type %q", text, r.Plan.Warnings, typ)
		}
	}
}

// TestCaseOfExpressionsWarns verifies that a plan warns about a regular expression that can never match
// because the index changes the case of its values.
func TestCaseOfExpressionsWarns(t *testing.T) {
	c, err := indexers.Parse(indexers.Source{Name: "x.yaml", Data: []byte(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: p}, spec: {resources: [
  {name: w, match: {group: example.com, kind: Widget}, indexes: [
    {name: low, path: .spec.host, transform: [Trim, Lower]}, {name: high, path: .spec.host, transform: [Upper]}, {name: plain, path: .spec.host}]}]}}`)})
	noError(t, err)
	f := indexers.Compile(c.Resources[0])
	querier := query.New(query.ForIndexer(cache.NewIndexer(cache.MetaNamespaceKeyFunc, f.Indexers())),
		f.Indexes()...)
	for text, letter := range map[string]string{
		`low=~"^www[.]Example"`: "E", `high=~"(ab|CD)+"`: "a", `low=~"\\S+[A-Z]?example"`: "",
		`low=~"(?i)WWW"`: "", `plain=~Www`: "", `high=~"WWW"`: "",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%s): %v", text, err)
		}
		plan, err := querier.Explain(q, query.Options{})
		if err != nil {
			t.Fatalf("Explain(%s): %v", text, err)
		}
		if got := strings.Join(plan.Warnings, " "); letter == "" && got != "" || letter != "" &&
			!strings.Contains(got, strconv.Quote(letter)) {
			t.Errorf("warnings of %s = %q, want one about %q", text, got, letter)
		}
	}
}

// TestDroppedValuesWarn verifies that a plan warns about an index that omits values because of its limit.
func TestDroppedValuesWarn(t *testing.T) {
	few, many := newWidget("a/few", "edge", 1, "gold"), newWidget("a/many", "edge", 1, "gold")
	few.Object["spec"].(m)["hosts"] = []any{"a", "b"}
	many.Object["spec"].(m)["hosts"] = []any{"a", "b", "c"}
	for name, fill := range map[string]func(f *indexers.Functions,
		objects ...*unstructured.Unstructured) query.Source{
		"client-go": func(f *indexers.Functions, objects ...*unstructured.Unstructured) query.Source {
			indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, f.Indexers())
			for _, u := range objects {
				noError(t, indexer.Add(u))
			}
			return query.ForIndexer(indexer, f)
		},
		"informer": func(f *indexers.Functions, objects ...*unstructured.Unstructured) query.Source {
			s := newCache(t, dynamicinformer.StoragePacked, f)
			put(t, s, objects...)
			return cacheSource{s}
		},
	} {
		f := compileIndexes(t, "{name: host, path: '.spec.hosts[*]'}", "maxValues: 2")
		if plan, err := query.New(fill(f, few), f.Indexes()...).Explain(query.Eq("host", "c"),
			query.Options{}); err != nil || len(plan.Warnings) > 0 {
			t.Errorf("%s: Explain without omitted values = %v, %v; want no warnings", name, plan, err)
		}
		querier := query.New(fill(f, few, many), f.Indexes()...)
		r, err := querier.Query(t.Context(), query.Eq("host", "c"), query.Options{})
		if err != nil || r.Len() > 0 || len(r.Plan.Warnings) != 1 || !strings.Contains(r.Plan.Warnings[0],
			`index "host" left out values`) {
			t.Errorf("%s: Query with omitted values = %v, %v; want a warning", name, r.Plan, err)
		}
		if r, err := querier.Query(t.Context(), query.All(), query.Options{}); err != nil ||
			len(r.Plan.Warnings) > 0 {
			t.Errorf("%s: Query without an index = %v, %v; want no warnings", name, r.Plan, err)
		}
	}
}

func TestSortErrors(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	for _, text := range []string{"weight up", "weight, name downwards", "nope", "team",
		"weight,,name", "weight, "} {
		if _, err := querier.Query(t.Context(), query.All(), query.Options{SortBy: text}); err == nil {
			t.Errorf("Query sorted by %q returned no error", text)
		}
	}
	var sortErr *query.SortError
	if _, err := querier.Query(t.Context(), query.All(), query.Options{SortBy: "weight up"}); !errors.As(err,
		&sortErr) || sortErr.Text != "weight up" {
		t.Errorf(`Query sorted by "weight up": got the error %v, want a SortError with this text`, err)
	}
}

// TestNullValues verifies that queries find null values only by Null or Missing.
func TestNullValues(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	for _, test := range []struct {
		query query.Query
		want  []string
	}{
		{query.Eq("class", indexers.Null), []string{"a/x"}},
		{query.Missing("class"), []string{"a/x"}},
		{query.Exists("class"), []string{"a/y", "a-b/x", "b/x"}},
	} {
		got, err := querier.Keys(t.Context(), test.query, query.Options{AllowScan: true})
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("Keys of %s = %v, %v; want %v", test.query, got, err, test.want)
		}
	}
}
