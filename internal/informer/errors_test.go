package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// captureErrors replaces utilruntime's error handlers, and returns a function that returns the reported
// errors. Tests that call it must not run in parallel.
func captureErrors(t *testing.T) func() []string {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	before := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, _ string, keysAndValues ...any) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, fmt.Sprint(err, keysAndValues))
		},
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		taken := lines
		lines = nil
		return taken
	}
}

// indexOddVersions indexes by name and fails for objects with an even version.
func indexOddVersions(obj any) ([]string, error) {
	u := obj.(*unstructured.Unstructured)
	if version := u.GetResourceVersion(); (version[len(version)-1]-'0')%2 == 0 {
		return nil, fmt.Errorf("version %s is even", version)
	}
	return []string{u.GetName()}, nil
}

func TestFailingIndexFunction(t *testing.T) {
	reports := captureErrors(t)
	f := newFeed(t, Options{Indexers: cache.Indexers{"odd": indexOddVersions}})
	log, _ := f.recordEvents()
	f.list(4, object("a", 1), object("b", 2), object("c", 4))
	expect(t, "reports of the list", reports(),
		[]string{"version 2 is even [index odd of objects objects 2 firstKey ns/b]"})
	values := func() []string {
		values := f.GetIndexer().ListIndexFuncValues("odd")
		slices.Sort(values)
		return values
	}
	expect(t, "indexed", values(), []string{"a"})
	f.put(object("a", 6), object("b", 7))
	expect(t, "reports of the events", reports(),
		[]string{"version 6 is even [index odd of objects objects 1 firstKey ns/a]"})
	expect(t, "indexed after the events", values(), []string{"b"})
	f.ok(f.AddIndexers(cache.Indexers{"odd2": indexOddVersions}))
	// Either object can be reported first.
	if got := reports(); len(got) != 1 ||
		!strings.Contains(got[0], "index odd2 of objects objects 2 firstKey ns/") {
		t.Errorf("got the error reports %q, want one for the new index", got)
	}
	f.delete(object("a", 8))
	f.flush()
	expect(t, "events", log.take(), []string{"initial a1", "initial b2", "initial c4", "update a1 a6",
		"update b2 b7", "delete a8"})
	if got := len(f.keys()); got != 2 {
		t.Errorf("the cache holds %d objects, want 2", got)
	}
}

func TestFailingTransform(t *testing.T) {
	reports := captureErrors(t)
	f := newIdleFeed(t, Options{})
	f.ok(f.SetTransform(func(obj any) (any, error) {
		if _, err := indexOddVersions(obj); err != nil {
			return nil, err
		}
		return obj, nil
	}))
	log, _ := f.recordEvents()
	f.startIncarnation()
	f.list(5, object("a", 1), object("b", 2), object("c", 5))
	expect(t, "reports of the list", reports(),
		[]string{`object "ns/b": transforming: version 2 is even [objects 1]`})
	if err := f.partition.Update(object("a", 6)); err == nil {
		t.Error("Update() = nil, want the transform's error")
	}
	f.list(8, object("a", 6), object("b", 7), object("c", 8))
	reports()
	f.delete(object("a", 10))
	expect(t, "reports of the deletion", reports(), []string{"transforming: version 10 is even [key ns/a]"})
	f.flush()
	expect(t, "events", log.take(), []string{
		"initial a1", "initial c5", "update a1 a1", "add b7", "update c5 c5", "lost ns/a a1",
	})
}

// TestTransformThatFailsOnce verifies that the changes that a failed transform made to its object are not
// stored.
func TestTransformThatFailsOnce(t *testing.T) {
	reports := captureErrors(t)
	f := newIdleFeed(t, Options{})
	failures := 1
	f.ok(f.SetTransform(func(obj any) (any, error) {
		u := obj.(*unstructured.Unstructured)
		if failures > 0 {
			u.SetName("changed-" + u.GetName())
			failures--
			return nil, errors.New("no")
		}
		return u, nil
	}))
	f.startIncarnation()
	out, err := f.partition.Transformer()(object("a", 1))
	f.ok(err)
	f.ok(f.partition.Replace([]any{out}, "1"))
	expect(t, "keys", f.keys(), []string{"ns/a"})
	failures = 1
	f.ok(f.partition.Replace([]any{object("a", 1)}, "2"))
	expect(t, "keys after a failure", f.keys(), []string{"ns/a"})
	reports()
	failures = 1
	f.delete(object("a", 3))
	expect(t, "reports of the deletion", reports(), []string{"transforming: no [key ns/a]"})
	expect(t, "keys after the deletion", f.keys(), []string{})
}

// TestTransformWritesGoValues verifies that a transform may put values into objects that have no JSON form in
// an unstructured object, and that are then transformed again.
func TestTransformWritesGoValues(t *testing.T) {
	for name, format := range map[string]store.Format{"decoded": store.Objects(nil),
		"packed": store.NewPacked(nil, nil), "metadata": store.NewMetadata(nil)} {
		t.Run(name, func(t *testing.T) {
			f := newIdleFeed(t, Options{Format: format})
			f.ok(f.SetTransform(func(obj any) (any, error) {
				u := obj.(*unstructured.Unstructured)
				u.Object["spec"] = map[string]any{"int": 1, "strings": []string{"a"}, "map": map[string]int{"b": 2},
					"struct": struct{ X uint8 }{3}, "time": metav1.Now(), "error": errors.New("no"), "func": t.Log}
				return u, nil
			}))
			f.startIncarnation()
			listed, err := f.partition.Transformer()(object("a", 1))
			f.ok(err)
			f.ok(f.partition.Replace([]any{listed}, "1"))
			f.ok(f.partition.Replace([]any{listed, object("b", 2)}, "2"))
			f.ok(f.partition.Update(object("a", 3)))
			f.delete(object("b", 4))
			expect(t, "keys", f.keys(), []string{"ns/a"})
		})
	}
}

func TestTransformerNeverFails(t *testing.T) {
	f := newFeed(t, Options{})
	if f.partition.Transformer() != nil {
		t.Error("Transformer() is not nil without a transform")
	}
	f.stopIncarnation()
	f.Informer.mu.transform = func(obj any) (any, error) { return nil, errors.New("no") }
	f.startIncarnation()
	in := object("a", 1)
	if out, err := f.partition.Transformer()(in); out != any(in) || err != nil {
		t.Errorf("the transformer returned %v, %v, want its argument", out, err)
	}
}

func TestObjectsWithoutKeys(t *testing.T) {
	f := newFeed(t, Options{})
	var keyError cache.KeyError
	for operation, err := range map[string]error{
		"add": f.partition.Add("no object"), "delete": f.partition.Delete("no object"),
		"replace": f.partition.Replace([]any{"no object"}, "1"),
	} {
		if !errors.As(err, &keyError) {
			t.Errorf("%s: error %v, want a key error", operation, err)
		}
	}
}
