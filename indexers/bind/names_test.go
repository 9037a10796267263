package bind_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers/query"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	values, err := querier.Values(s.ctx, "color", query.All(), query.Options{})
	if err != nil || len(values) != 2 || values[1].Value != "red" || values[1].Count != 2 {
		t.Errorf("Values = %v, %v; want two values, the second red with 2 objects", values, err)
	}

	// the numbers of the removed index are free; the new index size needs no number
	if err := second.Apply(parse(t, widgetsBySize)); err != nil {
		t.Fatal(err)
	}
	if !queryReturns(second, "widgets", "color=lamp", "home/lamp") || !queryReturns(second, "widgets", "size>5",
		"home/lamp", "home/table") || !queryReturns(third, "widgets", "color=red", "home/chair", "home/lamp") {
		t.Error("after a change of the second binding, a query of the second or the third returns wrong widgets")
	}
	if err := second.Apply(parse(t, widgetsByColor)); err != nil {
		t.Fatal(err)
	}
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
