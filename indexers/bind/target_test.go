package bind_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers/query"
)

// TestSubscriptionOnAnInformer verifies the events of a subscription to a query of a running informer.
func TestSubscriptionOnAnInformer(t *testing.T) {
	s := newFixture(t)
	b := s.follow(parse(t, widgetsBySize))
	s.eventually("bound", func() bool { return len(b.Targets()) == 1 })
	target, err := b.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := query.NewMatcher(query.Greater("size", "5"), target.Resource.Indexes...)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan query.Event, 100)
	if _, err := query.Subscribe(target.Informer, matcher, func(e query.Event) { events <- e }); err != nil {
		t.Fatal(err)
	}
	expectEvents := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			select {
			case e := <-events:
				got = append(got, string(e.Type)+" "+e.Key)
			case <-s.ctx.Done():
				t.Fatalf("timed out with the events %v, want %v", got, want)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	expectEvents("Added home/lamp", "Added home/table")
	apply(s.cluster, widget("chair", "red", 30))
	expectEvents("Added home/chair")
	apply(s.cluster, widget("chair", "blue", 30))
	expectEvents("Modified home/chair")
	apply(s.cluster, widget("chair", "blue", 1))
	expectEvents("Deleted home/chair")
}

// TestRemovedVersion verifies that a resource without version switches to another one when its version is no
// longer served.
func TestRemovedVersion(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("version v1 is bound", func() bool {
		return queryReturns(binding, "widgets", "color=red",
			"home/chair", "home/lamp")
	})
	graph, err := binding.References()
	if err != nil {
		t.Fatal(err)
	}
	apply(s.cluster, strings.Replace(definition("example.com", "widgets", "Widget"), "name: v1,",
		"name: v2,", 1))
	s.eventually("version v2 is bound", func() bool {
		target, err := binding.Target("widgets")
		return err == nil && target.GVR.Version == "v2" && queryReturns(binding, "widgets", "color=red", "home/chair",
			"home/lamp") && graph.Stats().Informers == 1 && graph.Stats().Synced == 1
	})
	if err := binding.Apply(parse(t, widgetsBySize)); err != nil {
		t.Fatal(err)
	}
	if target, err := binding.Target("widgets"); err != nil || target.GVR.Version != "v2" ||
		!queryReturns(binding, "widgets", "size=12", "home/table") {
		t.Errorf("Target after Apply = %v, %v; want version v2 with the new index", target, err)
	}
}
