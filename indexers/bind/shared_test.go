package bind_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers/bind"
)

// twoOfOneType are resources of one type, which share an informer and the names of indexes.
const twoOfOneType = `  - name: one
    match: {group: example.com, resource: widgets}
    indexes: [{name: k, path: .spec.color}]
  - name: two
    match: {group: example.com, resource: widgets}
    indexes: [{name: k, path: .metadata.name}, {name: size, path: .spec.size, type: int, order: sorted}]
`

// indexNames returns the indexes of a target's informer without the one by namespace.
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
	b := s.follow(parse(t, twoOfOneType))
	s.eventually("bound", func() bool { return queryReturns(b, "one", "k=red", "home/chair", "home/lamp") })
	if !queryReturns(b, "two", "k=lamp", "home/lamp") || !queryReturns(b, "two", "size>5", "home/lamp", "home/table") {
		t.Error("the second resource does not answer from its own indexes")
	}
	one, err := b.Target("one")
	if err != nil {
		t.Fatal(err)
	}
	if two, err := b.Target("two"); err != nil || two.Informer != one.Informer {
		t.Errorf("they do not share an informer: %v", err)
	}
	if got := one.Source().Snapshot().IndexNames(); !slices.Equal(got, []string{"k", "namespace"}) {
		t.Errorf("the source has %v", got)
	}

	// another binding with other indexes of the same names
	other := s.follow(parse(t, strings.Replace(twoOfOneType, ".spec.color", ".spec.size", 1)))
	if !queryReturns(other, "one", "k=3", "home/chair") || !queryReturns(b, "one", "k=red", "home/chair", "home/lamp") {
		t.Error("two bindings share indexes")
	}
	other.Close()
	if diff := cmp.Diff([]string{"one/k", "two/k", "two/size"}, indexNames(t, one)); diff != "" {
		t.Errorf("what a closed binding leaves (-want +got):\n%s", diff)
	}
}

// TestApplyLeavesOtherResourcesAlone verifies that a change of one resource does not affect the indexes of
// another.
func TestApplyLeavesOtherResourcesAlone(t *testing.T) {
	s := newFixture(t)
	b := s.follow(parse(t, twoOfOneType))
	s.eventually("bound", func() bool { return queryReturns(b, "two", "k=lamp", "home/lamp") })
	for _, change := range []*strings.Replacer{
		strings.NewReplacer("[{name: k, path: .spec.color}]", "[{name: k, path: .spec.size}]"),
		strings.NewReplacer("[{name: k, path: .spec.color}]", "[{name: other, path: .spec.color}]"),
		strings.NewReplacer("one", "three"),
		strings.NewReplacer(),
	} {
		if err := b.Apply(parse(t, change.Replace(twoOfOneType))); err != nil {
			t.Fatal(err)
		}
		if !queryReturns(b, "two", "k=lamp", "home/lamp") || !queryReturns(b, "two", "size>5", "home/lamp", "home/table") {
			t.Errorf("the second resource has changed")
		}
	}
	one, err := b.Target("one")
	if err != nil || !queryReturns(b, "one", "k=red", "home/chair", "home/lamp") {
		t.Fatal(err)
	}
	if got := indexNames(t, one); len(got) != 3 {
		t.Errorf("changes leave indexes behind: %v", got)
	}
}

// TestApplyChangesNothingWhenItFails verifies that a config that cannot be applied completely changes
// nothing.
func TestApplyChangesNothingWhenItFails(t *testing.T) {
	s := newFixture(t)
	before := parse(t, twoOfOneType)
	b := s.follow(before)
	s.eventually("bound", func() bool { return queryReturns(b, "two", "k=lamp", "home/lamp") })
	one, err := b.Target("one")
	if err != nil {
		t.Fatal(err)
	}
	was := indexNames(t, one)
	// the factory has no compression
	wrong := strings.Replace(twoOfOneType, ".spec.color", ".spec.size", 1) + `  - name: wrong
    match: {group: example.com, resource: widgets}
    storage: {mode: compressed}
`
	if err := b.Apply(parse(t, wrong)); err == nil || !strings.Contains(err.Error(), `resource "wrong"`) {
		t.Fatalf("got %v", err)
	}
	if b.Config() != before || len(b.Targets()) != 2 || !queryReturns(b, "one", "k=red", "home/chair", "home/lamp") {
		t.Errorf("the config is in force: %d targets", len(b.Targets()))
	}
	if diff := cmp.Diff(was, indexNames(t, one)); diff != "" {
		t.Errorf("indexes (-before +after):\n%s", diff)
	}
}

// TestApplyServesUntilTheNextHasSynced verifies that while an informer with another storage or prune lists,
// the previous one answers; later, its queriers report stale content.
func TestApplyServesUntilTheNextHasSynced(t *testing.T) {
	var held atomic.Bool
	let := make(chan struct{})
	s := newFixtureWithMiddleware(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if held.Load() && strings.HasSuffix(r.URL.Path, "/widgets") {
				select {
				case <-let:
				case <-r.Context().Done():
					return
				}
			}
			server.ServeHTTP(w, r)
		})
	})
	b := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(b, "widgets", "color=red", "home/chair", "home/lamp") })
	old, err := b.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}
	querier := old.Querier()
	held.Store(true)
	pruned := strings.Replace(widgetsByColor, "indexes:",
		"prune: {presets: [managedFields]}\n    indexes:", 1)
	// the second replaces the first before its sync; the third is the first with another index
	for _, text := range []string{widgetsDecoded, pruned,
		strings.Replace(pruned, "[{", "[{name: size, path: .spec.size}, {", 1)} {
		if err := b.Apply(parse(t, text)); err != nil {
			t.Fatal(err)
		}
		if !queryReturns(b, "widgets", "color=red", "home/chair", "home/lamp") {
			t.Error("nothing is found while the next informer lists")
		}
	}
	close(let)
	s.eventually("the next one takes over",
		func() bool { return queryReturns(b, "widgets", "size=12", "home/table") })
	s.eventually("the old one ends", old.Informer.IsStopped)
	s.eventually("its querier is stale", func() bool { return querier.Freshness().Stale })
	if next, err := b.Target("widgets"); err != nil || len(next.Informer.Status().Options) == 0 ||
		next.Querier().Freshness().Stale {
		t.Errorf("the next one is stale: %v", err)
	}
}

// TestApplyRevertedBeforeSync verifies that a change that is reverted does not list again.
func TestApplyRevertedBeforeSync(t *testing.T) {
	s := newFixture(t)
	b := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(b, "widgets", "color=red", "home/chair", "home/lamp") })
	for range 20 {
		if err := b.Apply(parse(t, widgetsDecoded)); err != nil {
			t.Fatal(err)
		}
		if err := b.Apply(parse(t, widgetsByColor)); err != nil {
			t.Fatal(err)
		}
		if !queryReturns(b, "widgets", "color=red", "home/chair", "home/lamp") {
			t.Error("nothing is found")
		}
	}
	s.eventually("settled", func() bool {
		target, err := b.Target("widgets")
		return err == nil && target.Resource.Storage.Mode == "" &&
			queryReturns(b, "widgets", "color=red", "home/chair", "home/lamp")
	})
}

// TestCloseKeepsReusedNames verifies that a closed binding removes its own indexes, but not an index of
// another binding that reused a name.
func TestCloseKeepsReusedNames(t *testing.T) {
	s := newFixture(t)
	first := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool {
		return queryReturns(first, "widgets", "color=red", "home/chair", "home/lamp")
	})
	if err := first.Apply(parse(t, widgetsBySize)); err != nil {
		t.Fatal(err)
	}
	second := s.follow(parse(t, widgetsByColor))
	target, err := second.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}
	if names := indexNames(t, target); !slices.Contains(names, "widgets/color") {
		t.Fatalf("the name is not taken over: %v", names)
	}
	first.Close()
	if !queryReturns(second, "widgets", "color=red", "home/chair", "home/lamp") {
		t.Errorf("remaining indexes: %v", indexNames(t, target))
	}
}
