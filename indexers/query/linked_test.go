package query_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
)

// informerStub calls the handlers of a graph like a synced informer.
type informerStub struct {
	cache.ResourceEventHandler
	cache.ResourceEventHandlerRegistration
}

func (i *informerStub) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration,
	error) {
	i.ResourceEventHandler = handler
	return i, nil
}

func (i *informerStub) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

func (i *informerStub) HasSyncedChecker() cache.DoneChecker { return i }
func (i *informerStub) Name() string                        { return "" }

func (i *informerStub) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// newReferenceQuerier returns a querier over widgets that refer to gadgets, their graph, and the informer of
// the gadgets.
func newReferenceQuerier(t *testing.T) (*query.Querier, *references.Graph, *informerStub) {
	t.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "x.yaml", Data: []byte(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: p}, spec: {resources: [
  {name: w, match: {group: example.com, kind: Widget}, references: [{name: gadget, to: {group: example.com, kind: Gadget, namePath: .spec.class}}]}]}}`)})
	noError(t, err)
	graph := references.New()
	t.Cleanup(graph.Close)
	widgets, gadgets := &informerStub{}, &informerStub{}
	widget := references.Type{Group: "example.com", Resource: "widgets", Kind: "Widget", Namespaced: true}
	for _, m := range []references.InformerSource{
		{Type: widget, References: c.Resources[0].References, Informer: widgets},
		{Type: references.Type{Group: "example.com", Resource: "gadgets", Kind: "Gadget", Namespaced: true},
			Informer: gadgets},
	} {
		if _, err := graph.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	noError(t, graph.WaitForSync(t.Context()))
	objects := []*unstructured.Unstructured{
		newWidget("a/x", "edge", 1, "gold"), newWidget("a/y", "edge", 2, "silver"), newWidget("b/x", "edge", 3,
			"gold"), newWidget("b/y", "core", 4, "iron"), newWidget("b/z", "edge", 5, nil),
	}
	for _, u := range objects {
		widgets.OnAdd(u, true)
	}
	widgets.OnAdd(newWidget("a/ahead", "edge", 1, "nothing"),
		false) // the graph has an object that the cache does not have yet
	gadgets.OnAdd(newWidget("a/gold", "", 0, nil), true)
	gadgets.OnAdd(newWidget("b/iron", "", 0, nil), true)
	return newCacheQuerier(t, objects...).WithReferences(graph.ForType(widget)), graph, gadgets
}

func TestQueriesAboutReferences(t *testing.T) {
	querier, _, gadgets := newReferenceQuerier(t)
	runQuery := func(text string) ([]string, *query.Plan) {
		t.Helper()
		q, err := query.Parse(text)
		noError(t, err)
		r, err := querier.Query(t.Context(), q, query.Options{})
		if err != nil {
			t.Fatalf("Query of %s: %v", text, err)
		}
		return r.Keys(), r.Plan
	}
	for text, want := range map[string][]string{
		"dangling()":                                          {"a/y", "b/x"},
		"dangling(gadget)":                                    {"a/y", "b/x"},
		"dangling(owners)":                                    {},
		"dangling() && weight>2":                              {"b/x"},
		"team=edge && !dangling(gadget)":                      {"a/x", "b/z"},
		"dangling(gadget) || team=core":                       {"a/y", "b/x", "b/y"},
		"refersTo(Gadget.example.com, a/gold)":                {"a/x"},
		"refersTo(gadgets.example.com, b/gold)":               {"b/x"},
		"refersTo(gadgets.example.com, b/gold, owners)":       {},
		"refersTo(gadgets, b/gold)":                           {},
		"referredBy(Widget.example.com, a/x)":                 {},
		"!dangling() && refersTo(Gadget.example.com, b/iron)": {"b/y"},
	} {
		if strings.HasPrefix(text, "!") {
			text = strings.Replace(text, "!dangling() && ", "", 1)
		}
		if got, plan := runQuery(text); !slices.Equal(got, want) {
			t.Errorf("keys of %s = %v, want %v\n%s", text, got, want, plan)
		}
	}
	_, plan := runQuery("dangling(gadget) && team=edge")
	want := "query  dangling(gadget) && team=edge\nstart  dangling(gadget): at most 3 of 5 objects\ncheck  team=edge\norder  namespace, name\nfound  2 objects by 4 tests\n"
	if diff := cmp.Diff(want, plan.String()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	gadgets.OnAdd(newWidget("a/silver", "", 0, nil), false)
	if got, _ := runQuery("dangling()"); !slices.Equal(got, []string{"b/x"}) {
		t.Errorf("dangling keys after the gadget a/silver is created = %v, want b/x", got)
	}
}

// TestUnknownObjectsWarn verifies that a reference query with a misnamed object warns.
func TestUnknownObjectsWarn(t *testing.T) {
	querier, _, _ := newReferenceQuerier(t)
	for text, want := range map[string]string{
		"refersTo(Gadget.example.com, a/gold)":   "",
		"refersTo(Gadget.example.com, a/none)":   "",
		"refersTo(Gadget.example.com, gold)":     "objects of type Gadget.example.com have a namespace; write namespace/gold",
		"refersTo(Gadgte.example.com, a/gold)":   "nothing refers to objects of type Gadgte.example.com",
		"refersTo(gadget.example.com, a/gold)":   "nothing refers to objects of type gadget.example.com",
		"refersTo(Gadget, a/gold)":               "nothing refers to objects of type Gadget,",
		"referredBy(Widget.example.com, a/x)":    "",
		"referredBy(Widget.example.com, x)":      "objects of type Widget.example.com have a namespace; write namespace/x",
		"referredBy(Gizmo.example.com, a/x)":     "no informer follows objects of type Gizmo.example.com",
		"team=edge && !refersTo(Gadget, a/gold)": "nothing refers to objects of type Gadget,",
	} {
		q, err := query.Parse(text)
		noError(t, err)
		plan, err := querier.Explain(q, query.Options{})
		noError(t, err)
		if got := strings.Join(plan.Warnings, "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("warnings of %s = %q, want %q", text, got, want)
		}
	}
}

func TestUnknownReferences(t *testing.T) {
	querier, _, _ := newReferenceQuerier(t)
	var unknown *query.UnknownReferenceError
	if _, err := querier.Keys(t.Context(), query.Dangling("gadgte"), query.Options{}); !errors.As(err,
		&unknown) || !slices.Equal(unknown.Known, []string{"gadget", "owners"}) {
		t.Errorf("Keys with a misspelled reference: got the error %v, want an UnknownReferenceError", err)
	}
	if _, err := newCacheQuerier(t).Keys(t.Context(), query.Dangling(""), query.Options{}); !errors.Is(err,
		query.ErrNoReferences) {
		t.Errorf("Keys of a querier without references: got the error %v, want ErrNoReferences", err)
	}
	if _, err := query.NewMatcher(query.Not(query.Dangling(""))); !errors.Is(err, query.ErrNoReferences) {
		t.Errorf("NewMatcher of dangling(): got the error %v, want ErrNoReferences", err)
	}
}

// TestUncheckedReferencesWarn verifies that a plan warns if the graph has no informer of the target type, so
// that it cannot know which references dangle.
func TestUncheckedReferencesWarn(t *testing.T) {
	c, err := indexers.Parse(indexers.Source{Name: "x.yaml", Data: []byte(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: p}, spec: {resources: [
  {name: w, match: {group: example.com, kind: Widget}, references: [{name: gadget, to: {group: example.com, kind: Gadget, namePath: .spec.class}}]}]}}`)})
	noError(t, err)
	graph := references.New()
	t.Cleanup(graph.Close)
	widgets := &informerStub{}
	widget := references.Type{Group: "example.com", Resource: "widgets", Kind: "Widget", Namespaced: true}
	if _, err := graph.Add(references.InformerSource{Type: widget, References: c.Resources[0].References,
		Informer: widgets}); err != nil {
		t.Fatal(err)
	}
	querier := newCacheQuerier(t).WithReferences(graph.ForType(widget))
	warnings := func(text string) []string {
		t.Helper()
		q, err := query.Parse(text)
		noError(t, err)
		r, err := querier.Query(t.Context(), q, query.Options{})
		if err != nil || r.Len() > 0 {
			t.Fatalf("Query of %s = %v, %v; want no objects", text, r, err)
		}
		return r.Plan.Warnings
	}
	if got := warnings("dangling(gadget)"); len(got) > 0 {
		t.Errorf("warnings without any reference = %v, want none", got)
	}
	widgets.OnAdd(newWidget("a/x", "edge", 1, "gold"), true)
	want := []string{
		"dangling(gadget): 1 reference to Gadget.example.com is not checked: no informer follows them, so that they do not count as dangling"}
	if diff := cmp.Diff(want, warnings("dangling(gadget)")); diff != "" {
		t.Errorf("warnings about the reference gadget (-want +got):\n%s", diff)
	}
	if got := warnings("dangling(owners)"); len(got) > 0 {
		t.Errorf("warnings about the reference owners = %v, want none", got)
	}
	if _, err := graph.Add(references.InformerSource{Type: references.Type{Group: "example.com", Resource: "gadgets",
		Kind: "Gadget", Namespaced: true}, Informer: &informerStub{}}); err != nil {
		t.Fatal(err)
	}
	noError(t, graph.WaitForSync(t.Context()))
	r, err := querier.Query(t.Context(), query.Dangling("gadget"), query.Options{})
	if err != nil || len(r.Plan.Warnings) > 0 {
		t.Errorf("Query once the graph has the target's informer = %v, %v; want no warnings", r.Plan, err)
	}
}

// clustersOf returns a querier for each cluster. Its certificates expire on the given days of January 2026.
func clustersOf(t *testing.T, days map[string][]int) map[string]*query.Querier {
	t.Helper()
	config, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(exampleConfig)})
	noError(t, err)
	functions := indexers.Compile(config.Resources[0])
	clusters := map[string]*query.Querier{}
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

// queryPage returns the keys of a page after the names of their clusters, and the token of the next page.
func queryPage(t *testing.T, clusters map[string]*query.Querier, q query.Query,
	options query.Options) (keys []string, next string) {
	t.Helper()
	page, first, err := query.NewClusterPage(options)
	noError(t, err)
	for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
		if cluster < first {
			continue
		}
		options, isFull := page.Options(cluster)
		r, err := clusters[cluster].Query(t.Context(), q, options)
		noError(t, err)
		next = page.Add(cluster, r.Len(), r.Continue)
		for key := range r.All() {
			if !isFull {
				keys = append(keys, cluster+" "+key)
			}
		}
		if next != "" {
			break
		}
	}
	return keys, next
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
			found, next := queryPage(t, clusters, q, options)
			got = append(got, found...)
			if n := len(found); limit > 0 && (n > limit || n == 0 || next != "" && n < limit) {
				t.Errorf("limit %d: a page has %d objects, and the next token is %q", limit, n, next)
			}
			if options.Continue = next; next == "" || pages > len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: all pages = %q, want %q", limit, got, want)
		}
	}
	options := query.Options{SortBy: "expiry", Limit: 4}
	_, options.Continue = queryPage(t, clusters, q, options)
	delete(clusters, "b/x") // between two pages
	if got, _ := queryPage(t, clusters, q, options); !slices.Equal(got, []string{"d cert-2"}) {
		t.Errorf("the page after a cluster was removed = %q, want the objects of the others", got)
	}
	if _, _, err := query.NewClusterPage(query.Options{Continue: "nothing"}); !errors.Is(err, query.ErrContinue) {
		t.Errorf("a token without a cluster: got the error %v, want ErrContinue", err)
	}
}
