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
// not dangle: Unchecked returns the type and the reason.
func TestUncheckedTypes(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, gadgetsAndWidgets))
	graph, err := binding.References()
	if err != nil {
		t.Fatal(err)
	}
	expectUnchecked := func(condition string, want ...string) {
		t.Helper()
		var got []string
		s.eventually(condition, func() bool {
			got = nil
			for _, u := range graph.Unchecked() {
				got = append(got, u.String())
			}
			return slices.Equal(got, want) && len(want) == 0 == (len(graph.Dangling()) > 0)
		})
	}
	expectUnchecked("the type is not served", "3 references to Gadget.example.com are not checked: discovery knows no such type; install its CRD, or correct the reference")
	querier, err := binding.Querier("widgets")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := querier.Explain(query.Dangling("gadget"), query.Options{})
	if err != nil || len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0],
		"discovery knows no such type") {
		t.Errorf("Explain = %v, %v; want one warning about the unknown type", plan, err)
	}
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	expectUnchecked("the type is served")

	var events []references.Event
	received := make(chan references.Event, 100)
	subscription, err := graph.Subscribe(func(e references.Event) { received <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(subscription.Stop)
	for range 3 { // initial events
		events = append(events, <-received)
	}
	s.delete(crd.GVR, "", "gadgets.example.com")
	expectUnchecked("the type is deleted",
		"3 references to Gadget.example.com are not checked: the server does not serve them now")
	for range 3 {
		if e := <-received; e.Type != references.DanglingStopped || e.Reason != references.TargetUnknown {
			t.Errorf("event %+v after %v, want DanglingStopped because of TargetUnknown", e, events)
		}
	}
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	expectUnchecked("the type is served again")

	if err := binding.Apply(parse(t,
		gadgetsAndWidgets[:strings.Index(gadgetsAndWidgets, "  - name: gadgets")])); err != nil {
		t.Fatal(err)
	}
	expectUnchecked("the config has no resource for the type",
		"3 references to Gadget.example.com are not checked: no resource of the config matches gadgets.example.com")
}
