package bind_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/test/testcluster"
)

var widgetsResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// TestNumberedNames verifies that bindings of one informer can have the same names of resources and indexes.
// The informer appends a number to the later names. Queries, statistics, changes and removals of the numbered
// indexes work as usual.
func TestNumberedNames(t *testing.T) {
	s := newFixture(t)
	first := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool {
		return queryReturns(first, "widgets", "color=red", "home/chair", "home/lamp")
	})
	second, third := s.follow(parse(t, widgetsByColor)), s.follow(parse(t, widgetsByColor))
	target, err := third.Target("widgets")
	noError(t, err)
	expectIndexes := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, indexNames(t, target)); diff != "" {
			t.Errorf("indexes of the informer (-want +got):\n%s", diff)
		}
	}
	expectIndexes("widgets/color", "widgets/color~2", "widgets/color~3")
	if stats := target.Stats(); len(stats) != 1 || stats[0].Index != "color" || stats[0].Seen == 0 {
		t.Errorf("Stats = %+v, want only color, with seen objects", stats)
	}
	querier, err := third.Querier("widgets")
	noError(t, err)
	values, err := querier.Values(s.ctx, "color", query.All(), query.Options{})
	if err != nil || len(values) != 2 || values[1].Value != "red" || values[1].Count != 2 {
		t.Errorf("Values = %v, %v; want two values, the second red with 2 objects", values, err)
	}

	// the numbers of the removed index are free; the new index size needs no number
	noError(t, second.Apply(parse(t, widgetsBySize)))
	if !queryReturns(second, "widgets", "color=lamp", "home/lamp") || !queryReturns(second, "widgets", "size>5",
		"home/lamp", "home/table") || !queryReturns(third, "widgets", "color=red", "home/chair", "home/lamp") {
		t.Error("after a change of the second binding, a query of the second or the third returns wrong widgets")
	}
	noError(t, second.Apply(parse(t, widgetsByColor)))
	if !queryReturns(second, "widgets", "color=red", "home/chair", "home/lamp") {
		t.Error("after the second binding's first config is applied again, its query returns wrong widgets")
	}
	if names := indexNames(t, target); len(names) != 3 {
		t.Errorf("indexes after the changes = %v, want 3", names)
	}
	first.Close()
	second.Close()
	expectIndexes("widgets/color~3")
	if !queryReturns(third, "widgets", "color=red", "home/chair", "home/lamp") {
		t.Error("after the other bindings are closed, the third binding's query returns wrong widgets")
	}
}

const widgetsAndGadgetsOfTeams = `  - name: widgets
    match: {group: example.com, resource: widgets}
    references: [{name: gadget, to: {group: example.com, kind: Gadget, namePath: .spec.color}}]
  - name: gadgets
    match: {group: example.com, resource: gadgets}
    namespaces: {include: [prod, "team-*"]}
`

// TestReferencesToForbiddenNamespace verifies that references to a type that can only be read in some
// namespaces do not dangle before all matching namespaces are readable.
func TestReferencesToForbiddenNamespace(t *testing.T) {
	var injector *testcluster.Injector
	s := newFixtureWithMiddleware(t, func(server http.Handler) http.Handler {
		injector = testcluster.NewInjector(server)
		for _, path := range []string{"/apis/example.com/v1/gadgets", "/api/v1/namespaces"} {
			injector.Add(testcluster.Fault{Match: testcluster.Match{Path: path},
				Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden,
					"not in all namespaces")})
		}
		return injector
	})
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	for _, namespace := range []string{"prod", "team-a"} {
		apply(s.cluster, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, namespace))
		for _, color := range []string{"red", "green"} {
			apply(s.cluster, fmt.Sprintf(`{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: %s, name: %s}, spec: {color: %[2]s}}`, namespace, color))
		}
		apply(s.cluster, fmt.Sprintf(`{apiVersion: example.com/v1, kind: Gadget, metadata: {namespace: %s, name: red}}`, namespace))
	}
	binding := s.follow(parse(t, widgetsAndGadgetsOfTeams))
	graph, err := binding.References()
	noError(t, err)
	s.eventually("both informers are synced", func() bool { return graph.Stats().Synced == 2 })
	if got := graph.Dangling(); len(got) > 0 {
		t.Errorf("Dangling = %v, want none while targets are forbidden", got)
	}
	to := references.Object{Group: "example.com", Kind: "Gadget", Namespace: "prod", Name: "red"}
	if got := graph.To(to); len(got) != 1 || got[0].State != references.Resolved {
		t.Errorf("To(%v) = %v, want one resolved reference", to, got)
	}
	injector.Clear()
	target, err := binding.Target("gadgets")
	noError(t, err)
	target.Informer.Retry()
	s.eventually("the references to green dangle", func() bool {
		got := graph.Dangling()
		return len(got) == 2 && got[0].From.Key() == "prod/green" && got[1].From.Key() == "team-a/green"
	})
}
