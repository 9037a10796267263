package bind_test

import (
	"strings"
	"testing"
)

// A resource without version switches to another one when its version is no longer served.
func TestRemovedVersion(t *testing.T) {
	s := newFixture(t)
	b := s.follow(parse(t, widgetsByColor))
	s.eventually("v1", func() bool { return queryReturns(b, "widgets", "color=red", "home/chair", "home/lamp") })
	graph, err := b.References()
	if err != nil {
		t.Fatal(err)
	}
	apply(s.cluster, strings.Replace(definition("example.com", "widgets", "Widget"), "name: v1,",
		"name: v2,", 1))
	s.eventually("v2", func() bool {
		target, err := b.Target("widgets")
		return err == nil && target.GVR.Version == "v2" && queryReturns(b, "widgets", "color=red", "home/chair",
			"home/lamp") && graph.Stats().Informers == 1 && graph.Stats().Synced == 1
	})
	if err := b.Apply(parse(t, widgetsBySize)); err != nil {
		t.Fatal(err)
	}
	if target, err := b.Target("widgets"); err != nil || target.GVR.Version != "v2" ||
		!queryReturns(b, "widgets", "size=12", "home/table") {
		t.Errorf("after Apply: %v, %v", target, err)
	}
}
