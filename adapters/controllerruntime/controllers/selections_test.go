package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/test/testcluster"
)

// requestLog is a reconciler that counts the requests.
type requestLog struct {
	mu     sync.Mutex
	counts map[string]int
}

func (l *requestLog) Reconcile(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[r.Name]++
	return reconcile.Result{}, nil
}

// take returns the names of the requests since the last call.
func (l *requestLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Sorted(maps.Keys(l.counts))
	clear(l.counts)
	return names
}

func inTeam(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"team": name}) }

func named(instance string) types.NamespacedName {
	return types.NamespacedName{Namespace: "web", Name: instance}
}

// TestSelect verifies that an object enqueues exactly the instances that select it, that another instance
// lists only its part, that the watch of a type ends with the last instance, and that instances are enqueued
// after each first list, and when their type goes.
func TestSelect(t *testing.T) {
	f := newFixture(t, Options{Workers: 2})
	f.install("apple")
	f.install("pear")
	log := &requestLog{counts: map[string]int{}}
	if err := f.all.Ensure(t.Context(), "apples", Settings{For: watchOf("apple"), Reconciler: log}); err != nil {
		t.Fatal(err)
	}
	pears := watchOf("pear").Type
	pear := func(name, team, step string) {
		f.load("{apiVersion: example.com/v1, kind: pear, metadata: {namespace: web, name: "+
			"%s, labels: {team: %s}}, step: %s}", name, team, step)
	}
	selects := func(of Type, instance string, objects ...Objects) {
		t.Helper()
		f.eventually("Select", func() bool { // it fails before the start of the manager
			return f.all.Select("apples", of, named(instance), objects...) == nil
		})
	}
	expect := func(step string, want ...string) {
		t.Helper()
		var got []string
		await := func(names ...string) {
			t.Helper()
			f.eventually(step, func() bool {
				got = append(got, log.take()...)
				return !slices.ContainsFunc(names,
					func(name string) bool { return !slices.Contains(got, name) })
			})
		}
		await(want...)
		f.all.lists.Wait()
		f.all.controllers["apples"].queue.Add(reconcile.Request{NamespacedName: named("last")})
		await("last") // the queue is in order
		slices.Sort(got)
		got = slices.DeleteFunc(slices.Compact(got), func(name string) bool { return name == "last" })
		if !slices.Equal(got, want) {
			t.Errorf("%s: requests of %q, want of %q", step, got, want)
		}
	}
	pear("a", "red", "a")
	pear("b", "blue", "a")
	pear("c", "green", "a")
	selects(pears, "one", Objects{Namespace: "web", Labels: inTeam("red")})
	expect("the first instance", "one")
	lists := func() int {
		return f.cluster.Faults().Count(testcluster.Match{Verbs: []string{"list", "watch-list"}, Resource: "pears"})
	}
	before := lists()
	selects(pears, "two", Objects{Labels: inTeam("blue")}, Objects{Namespace: "web", Name: "a"})
	expect("the second instance", "two")
	selects(pears, "three", Objects{Namespace: "web", Name: "b"})
	expect("the third instance", "three")
	selects(pears, "three", Objects{Namespace: "web", Name: "b"})
	expect("the same selection")
	pear("a", "red", "b")
	expect("an update of a", "one", "two")
	pear("b", "blue", "b")
	expect("an update of b", "three", "two")
	pear("a", "green", "c")
	expect("a, which leaves a selector", "one", "two")
	f.eventually("the part", func() bool { return f.all.Informer(pears).WaitForSelectors(t.Context()) == nil })
	if keys := f.all.Informer(pears).GetStore().ListKeys(); len(keys) != 2 {
		t.Errorf("the cache has %q, want the selected objects", keys)
	}
	if more := lists() - before; more > 3 {
		t.Errorf("%d lists for two more instances, want one for each selector", more)
	}
	f.all.Unselect("apples", named("two"))
	f.delete(f.objects("pear"), "b")
	expect("a deletion", "three")
	f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: three}}")
	expect("the creation of an instance", "three")
	f.delete(f.objects("apple"), "three")
	expect("the deletion of an instance", "three")
	f.all.Unselect("apples", named("one"), pears)
	if f.all.Informer(pears) != nil {
		t.Error("the watch of a type continues after the last instance")
	}
	plums := watchOf("plum").Type
	selects(plums, "four", Objects{})
	expect("a type that is not installed")
	f.install("plum")
	expect("an installed type", "four")
	release := make(chan struct{})
	f.cluster.Faults().Add(testcluster.Fault{Effect: testcluster.Hold(release),
		Match: testcluster.Match{Verbs: testcluster.Reads, Resource: "plums"}})
	selects(plums, "five", Objects{Labels: inTeam("red")})
	selects(plums, "six", Objects{Labels: inTeam("red")}) // before it is listed for five
	close(release)
	expect("a list for two instances", "five", "six")
	f.delete(f.cluster.Client().Resource(crds), "plums.example.com")
	expect("a deleted type", "five", "four", "six")
	if err := f.all.Select("apples", pears, named("one"), Objects{Labels: labels.Nothing()}); err == nil {
		t.Error("Select() with a selector that matches nothing = nil")
	}
	if err := f.all.Select("unknown", pears, named("one"), Objects{}); err == nil {
		t.Error("Select() for a controller that does not run = nil")
	}
}

// TestDeletedDuringReconcile verifies that selections end that a reconcile makes for a deleted instance.
func TestDeletedDuringReconcile(t *testing.T) {
	f := newFixture(t, Options{})
	f.install("apple")
	pears, started, proceed := watchOf("pear").Type, make(chan string), make(chan struct{})
	reconciler := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		if _, err := f.objects("apple").Get(ctx, r.Name, metav1.GetOptions{}); err != nil {
			started <- "missing " + r.Name
			return reconcile.Result{}, nil
		}
		started <- r.Name
		<-proceed
		return reconcile.Result{}, f.all.Select("apples", pears, r.NamespacedName, Objects{Name: r.Name})
	})
	settings := Settings{For: watchOf("apple"), Reconciler: reconciler}
	if err := f.all.Ensure(t.Context(), "apples", settings); err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if got := <-started; got != want {
			t.Fatalf("reconciled %q, want %q", got, want)
		}
	}
	f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: kept}}")
	expect("kept")
	proceed <- struct{}{}
	f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: gone}}")
	expect("gone")
	f.delete(f.objects("apple"), "gone")
	f.eventually("the deletion", func() bool {
		f.all.mu.Lock()
		defer f.all.mu.Unlock()
		return f.all.controllers["apples"].reconciling[named("gone")]
	})
	proceed <- struct{}{}
	expect("missing gone")
	owners := &f.all.parts[pears].owners
	if gone, kept := owners.Of("web", "gone", nil), owners.Of("web", "kept", nil); len(gone) != 0 || len(kept) != 1 {
		t.Errorf("%d deleted instances select objects, and %d others, want 0 and 1", len(gone), len(kept))
	}
}

// selectFixture returns controllers with many instances that select objects of types that do not exist.
func selectFixture(b *testing.B) (f *Controllers, settings Settings) {
	settings = Settings{For: watchOf("apple"), Watches: []Watch{watchOf("pear"), watchOf("plum")},
		Reconciler: &requestLog{}}
	f, _ = runManager(b, newCluster(b), Options{})
	for n := range 100 {
		if err := f.Ensure(b.Context(), fmt.Sprint("c", n), settings); err != nil {
			b.Fatal(err)
		}
	}
	return f, settings
}

// BenchmarkEnsure measures Ensure of a controller that runs already.
func BenchmarkEnsure(b *testing.B) {
	f, settings := selectFixture(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Ensure(b.Context(), "c7", settings); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSelect measures Select of what an instance selects already, with another labels.Selector.
func BenchmarkSelect(b *testing.B) {
	f, _ := selectFixture(b)
	instance, secrets := named("a"), watchOf("secret").Type
	for n := range 50 {
		for f.Select("c7", secrets, named(fmt.Sprint(n)), Objects{Labels: inTeam(fmt.Sprint(n))}) != nil {
			time.Sleep(time.Millisecond) // until the manager has started
		}
	}
	red, again := inTeam("red"), inTeam("red")
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Select("c7", secrets, instance, Objects{Labels: red}, Objects{Name: "x"}); err != nil {
			b.Fatal(err)
		}
		red, again = again, red
	}
}
