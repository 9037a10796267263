package bind_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
)

// twoResourcesOfOneType are resources of one type, which share an informer and have an index k each.
const twoResourcesOfOneType = `  - name: one
    match: {group: example.com, resource: widgets}
    indexes: [{name: k, path: .spec.color}]
  - name: two
    match: {group: example.com, resource: widgets}
    indexes: [{name: k, path: .metadata.name}, {name: size, path: .spec.size, type: Int, order: Sorted}]
`

// indexNames returns the names of the indexes of a target's informer, except namespace.
func indexNames(t *testing.T, target *bind.Target) []string {
	t.Helper()
	names := target.Informer.Snapshot().IndexNames()
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "namespace" })
}

// TestResourcesOfOneTypeDoNotShareIndexes verifies that resources of one type have separate indexes with the
// same names.
func TestResourcesOfOneTypeDoNotShareIndexes(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, twoResourcesOfOneType))
	s.eventually("bound", func() bool { return queryReturns(binding, "one", "k=red", "home/chair", "home/lamp") })
	if !queryReturns(binding, "two", "k=lamp", "home/lamp") || !queryReturns(binding, "two", "size>5", "home/lamp", "home/table") {
		t.Error("queries of the second resource do not return the widgets of its own indexes")
	}
	firstTarget, err := binding.Target("one")
	noError(t, err)
	if two, err := binding.Target("two"); err != nil || two.Informer != firstTarget.Informer {
		t.Errorf("the resources have different informers, want one (%v)", err)
	}
	if got := firstTarget.Source().Snapshot().IndexNames(); !slices.Equal(got, []string{"k", "namespace"}) {
		t.Errorf("IndexNames of the first resource's source = %v, want k and namespace", got)
	}

	// another binding with other indexes of the same names
	other := s.follow(parse(t, strings.Replace(twoResourcesOfOneType, ".spec.color", ".spec.size", 1)))
	if !queryReturns(other, "one", "k=3", "home/chair") || !queryReturns(binding, "one", "k=red", "home/chair", "home/lamp") {
		t.Error("queries of two bindings do not return the widgets of their own indexes")
	}
	other.Close()
	if diff := cmp.Diff([]string{"one/k", "two/k", "two/size"}, indexNames(t, firstTarget)); diff != "" {
		t.Errorf("indexes after the other binding is closed (-want +got):\n%s", diff)
	}
}

// TestApplyChangesNothingWhenItFails verifies that a config that cannot be applied completely changes
// nothing.
func TestApplyChangesNothingWhenItFails(t *testing.T) {
	s := newFixture(t)
	oldConfig := parse(t, twoResourcesOfOneType)
	binding := s.follow(oldConfig)
	s.eventually("bound", func() bool { return queryReturns(binding, "two", "k=lamp", "home/lamp") })
	target, err := binding.Target("one")
	noError(t, err)
	indexesBefore := indexNames(t, target)
	// the factory has no compression
	invalid := strings.Replace(twoResourcesOfOneType, ".spec.color", ".spec.size", 1) + `  - name: wrong
    match: {group: example.com, resource: widgets}
    storage: {mode: Compressed}
`
	if err := binding.Apply(parse(t, invalid)); err == nil || !strings.Contains(err.Error(), `resource "wrong"`) {
		t.Fatalf("Apply: got the error %v, want one about the resource wrong", err)
	}
	if binding.Config() != oldConfig || len(binding.Targets()) != 2 || !queryReturns(binding, "one", "k=red", "home/chair", "home/lamp") {
		t.Errorf("the failed Apply changed the config, the %d targets or the indexes", len(binding.Targets()))
	}
	if diff := cmp.Diff(indexesBefore, indexNames(t, target)); diff != "" {
		t.Errorf("indexes (-before +after):\n%s", diff)
	}
}

// TestApplyServesUntilTheNextHasSynced verifies that the previous informer answers while its replacement
// lists. After the replacement, queriers of the previous target answer from the new informer.
func TestApplyServesUntilTheNextHasSynced(t *testing.T) {
	var holdLists atomic.Bool
	release := make(chan struct{})
	s := newFixtureWithMiddleware(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if holdLists.Load() && strings.HasSuffix(r.URL.Path, "/widgets") {
				select {
				case <-release:
				case <-r.Context().Done():
					return
				}
			}
			server.ServeHTTP(w, r)
		})
	})
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	old, err := binding.Target("widgets")
	noError(t, err)
	querier := old.Querier()
	holdLists.Store(true)
	pruned := strings.Replace(widgetsByColor, "indexes:",
		"prune: {presets: [ManagedFields]}\n    indexes:", 1)
	// the second config replaces the first before its sync; the third adds an index to the second
	for _, text := range []string{widgetsDecoded, pruned,
		strings.Replace(pruned, "[{", "[{name: size, path: .spec.size}, {", 1)} {
		noError(t, binding.Apply(parse(t, text)))
		if !queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") {
			t.Error("the query returns wrong widgets while the next informer lists")
		}
	}
	close(release)
	s.eventually("the next informer answers",
		func() bool { return queryReturns(binding, "widgets", "size=12", "home/table") })
	s.eventually("the old informer stops", old.Informer.IsStopped)
	if keys, err := querier.Keys(s.ctx, query.Eq("size", "12"), query.Options{}); err != nil ||
		!slices.Equal(keys, []string{"home/table"}) || querier.Freshness().Stale {
		t.Errorf("the querier of the old target returns %v, %v; want the answer of the new informer", keys, err)
	}
	if next, err := binding.Target("widgets"); err != nil || len(next.Informer.Status().Options) == 0 ||
		next.Querier().Freshness().Stale {
		t.Errorf("the next target has no options or is stale: %v", err)
	}
}

// TestCloseKeepsReusedNames verifies that a closed binding removes its own indexes, but not an index of
// another binding that reused a name.
func TestCloseKeepsReusedNames(t *testing.T) {
	s := newFixture(t)
	first := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool {
		return queryReturns(first, "widgets", "color=red", "home/chair", "home/lamp")
	})
	noError(t, first.Apply(parse(t, widgetsBySize)))
	second := s.follow(parse(t, widgetsByColor))
	target, err := second.Target("widgets")
	noError(t, err)
	if names := indexNames(t, target); !slices.Contains(names, "widgets/color") {
		t.Fatalf("indexes = %v, want widgets/color, which the first binding no longer uses", names)
	}
	first.Close()
	if !queryReturns(second, "widgets", "color=red", "home/chair", "home/lamp") {
		t.Errorf("the query of the second binding returns wrong widgets after Close of the first; indexes: %v",
			indexNames(t, target))
	}
}

// TestApplyLeavesOtherResourcesAlone verifies that a change of one resource does not affect the indexes of
// another.
func TestApplyLeavesOtherResourcesAlone(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, twoResourcesOfOneType))
	s.eventually("bound", func() bool { return queryReturns(binding, "two", "k=lamp", "home/lamp") })
	for _, change := range []*strings.Replacer{
		strings.NewReplacer("[{name: k, path: .spec.color}]", "[{name: k, path: .spec.size}]"),
		strings.NewReplacer("[{name: k, path: .spec.color}]", "[{name: other, path: .spec.color}]"),
		strings.NewReplacer("one", "three"),
		strings.NewReplacer(),
	} {
		noError(t, binding.Apply(parse(t, change.Replace(twoResourcesOfOneType))))
		if !queryReturns(binding, "two", "k=lamp", "home/lamp") || !queryReturns(binding, "two", "size>5", "home/lamp", "home/table") {
			t.Errorf("queries of the second resource changed with the first resource")
		}
	}
	one, err := binding.Target("one")
	if err != nil || !queryReturns(binding, "one", "k=red", "home/chair", "home/lamp") {
		t.Fatal(err)
	}
	if got := indexNames(t, one); len(got) != 3 {
		t.Errorf("indexes after the changes = %v, want 3", got)
	}
}

// TestApplyRevertedBeforeSync verifies that queries succeed while changes are applied and reverted at once.
func TestApplyRevertedBeforeSync(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	for range 20 {
		noError(t, binding.Apply(parse(t, widgetsDecoded)))
		noError(t, binding.Apply(parse(t, widgetsByColor)))
		if !queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") {
			t.Error("the query returns wrong widgets after a reverted change")
		}
	}
	s.eventually("the first config is in effect", func() bool {
		target, err := binding.Target("widgets")
		return err == nil && target.Resource.Storage.Mode == "" &&
			queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp")
	})
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
