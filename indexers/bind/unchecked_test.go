package bind_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
)

// TestUncheckedTypes verifies that references to a type that is not served, not in the config, or removed do
// not dangle: the graph returns the types with the reason.
func TestUncheckedTypes(t *testing.T) {
	s := newFixture(t)
	b := s.follow(parse(t, gadgetsAndWidgets))
	graph, err := b.References()
	if err != nil {
		t.Fatal(err)
	}
	unchecked := func(what string, want ...string) {
		t.Helper()
		var got []string
		s.eventually(what, func() bool {
			got = nil
			for _, u := range graph.Unchecked() {
				got = append(got, u.String())
			}
			return slices.Equal(got, want) && len(want) == 0 == (len(graph.Dangling()) > 0)
		})
	}
	unchecked("not served", "3 references to Gadget.example.com are not checked: discovery knows no such type; install its CRD, or correct the reference")
	querier, err := b.Querier("widgets")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := querier.Explain(query.Dangling("gadget"), query.Options{})
	if err != nil || len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0],
		"discovery knows no such type") {
		t.Errorf("%v, %v", plan, err)
	}
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	unchecked("followed")

	var events []references.Event
	heard := make(chan references.Event, 100)
	subscription, err := graph.Subscribe(func(e references.Event) { heard <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(subscription.Stop)
	for range 3 { // initial events
		events = append(events, <-heard)
	}
	s.delete(crd.GVR, "", "gadgets.example.com")
	unchecked("gone", "3 references to Gadget.example.com are not checked: the server does not serve them now")
	for range 3 {
		if e := <-heard; e.Type != references.DanglingStopped || e.Reason != references.TargetUnknown {
			t.Errorf("got %+v after %v", e, events)
		}
	}
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	unchecked("back")

	if err := b.Apply(parse(t,
		gadgetsAndWidgets[:strings.Index(gadgetsAndWidgets, "  - name: gadgets")])); err != nil {
		t.Fatal(err)
	}
	unchecked("not in the config",
		"3 references to Gadget.example.com are not checked: no resource of the config matches gadgets.example.com")
}
