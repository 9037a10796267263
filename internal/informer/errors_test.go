package informer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	if err := f.partition.Add(object("a", 6)); err == nil {
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
			f.ok(f.partition.Add(object("a", 3)))
			f.delete(object("b", 4))
			expect(t, "keys", f.keys(), []string{"ns/a"})
		})
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

func neverGiveUp() (<-chan struct{}, error) { return nil, nil }

// isReached reports whether a wait for a version has ended, and its error.
func (f *feed) isReached(version string) (bool, error) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	err := f.WaitForVersion(ctx, version, neverGiveUp)
	if errors.Is(err, context.Canceled) {
		return false, nil
	}
	return true, err
}

func (f *feed) expectReached(step, version string, want bool) {
	f.Helper()
	if got, err := f.isReached(version); got != want || err != nil {
		f.Errorf("%s: over %v (%v), want %v", step, got, err, want)
	}
}

// TestOnlyStreamsReachVersions verifies that a wait for a version does not end with a user's write, a
// bookmark before the list, or an event of an earlier run of the informer.
func TestOnlyStreamsReachVersions(t *testing.T) {
	f := newFeed(t, Options{})
	f.expectReached("before the list", "1", false)
	f.ok(f.partition.Bookmark("20"))
	f.expectReached("an early bookmark", "1", false)
	f.list(10, object("a", 5))
	f.expectReached("listed", "10", true)
	f.ok(f.GetStore().Add(object("b", 30)))
	f.expectReached("a write of a user", "11", false)
	f.put(object("a", 12))
	f.expectReached("an event", "12", true)
	f.expectReached("a later version", "13", false)
	f.delete(object("unknown", 14))
	f.expectReached("a deletion of an unknown object", "14", true)
	f.ok(f.partition.Bookmark("16"))
	f.expectReached("a bookmark", "16", true)
	f.stopIncarnation()
	f.expectReached("between two incarnations", "16", false)
	f.startIncarnation()
	f.expectReached("before the list of the next", "16", false)
	f.list(18)
	f.expectReached("the next", "18", true)
}

// TestPartitionsReachVersions verifies that all partitions have to reach a version.
func TestPartitionsReachVersions(t *testing.T) {
	f := newFeed(t, Options{})
	parts, _ := f.addPartitions("a", "b")
	a, b := parts[0], parts[1]
	f.ok(a.Replace(nil, "10"))
	f.expectReached("one has listed", "5", false)
	f.ok(b.Replace(nil, "8"))
	f.expectReached("both have listed", "8", true)
	f.expectReached("one is behind", "9", false)
	f.ok(f.GetStore().Add(object("x", 30)))
	f.expectReached("a write of a user", "8", true)
	f.ok(b.Bookmark("12"))
	f.expectReached("a bookmark", "10", true)
	f.expectReached("the other is behind", "11", false)
}

// TestOpaqueLists checks that waits fail if the version of the list is not a number, even if later events
// have numbers.
func TestOpaqueLists(t *testing.T) {
	for _, version := range []string{"", "0", "x1"} {
		f := newFeed(t, Options{})
		result := make(chan error, 1)
		go func() { result <- f.WaitForVersion(f.ctx, "5", neverGiveUp) }() // ends with the list
		f.ok(f.partition.Replace([]any{object("a", 1)}, version))
		if err := <-result; !errors.Is(err, ErrOpaqueVersion) {
			t.Errorf("WaitForVersion() after a list at %q = %v, want ErrOpaqueVersion", version, err)
		}
		f.put(object("a", 9))
		if over, err := f.isReached("5"); !over || !errors.Is(err, ErrOpaqueVersion) {
			t.Errorf("WaitForVersion() after a list at %q and an event = %v, want ErrOpaqueVersion", version,
				err)
		}
	}
}

// TestListsLoseVersions verifies that a list that is older than the cache ends the waits for later versions.
func TestListsLoseVersions(t *testing.T) {
	f := newFeed(t, Options{})
	f.list(100)
	result := make(chan error, 1)
	go func() { result <- f.WaitForVersion(f.ctx, "120", neverGiveUp) }() // ends with the list
	for waits := 0; waits == 0; runtime.Gosched() {
		f.mu.Lock()
		waits = len(f.mu.waits.pending)
		f.mu.Unlock()
	}
	f.list(50)
	if err := <-result; !errors.Is(err, ErrVersionLost) {
		t.Error(err)
	}
	f.expectReached("the cache of the restored server", "60", false)
}

// TestDeletionsAreSeen verifies that an object is deleted when it is removed or replaced, or gets a deletion
// timestamp that it did not have.
func TestDeletionsAreSeen(t *testing.T) {
	terminating := func(version int) *unstructured.Unstructured {
		o := object("a", version)
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
		return o
	}
	for name, tt := range map[string]struct {
		before *unstructured.Unstructured
		event  func(*feed)
		want   bool
	}{
		"removed":             {object("a", 5), func(f *feed) { f.delete(object("a", 11)) }, true},
		"replaced":            {object("a", 5), func(f *feed) { f.put(object("a@other", 11)) }, true},
		"terminates":          {object("a", 5), func(f *feed) { f.put(terminating(11)) }, true},
		"changed":             {object("a", 5), func(f *feed) { f.put(object("a", 11)) }, false},
		"nothing":             {object("a", 5), func(*feed) {}, false},
		"terminated already":  {terminating(5), func(f *feed) { f.put(terminating(11)) }, false},
		"removed in the end":  {terminating(5), func(f *feed) { f.delete(object("a", 11)) }, true},
		"not cached":          {object("b", 5), func(*feed) {}, false},
		"not cached, changes": {object("b", 5), func(f *feed) { f.put(object("b", 11)) }, false},
		"the type is gone":    {object("a", 5), func(f *feed) { f.stopIncarnation(); f.forget() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, Options{})
			f.list(10, tt.before)
			wait := f.AwaitDeletion("ns/a", "uid-a")
			tt.event(f)
			ctx, cancel := context.WithCancel(f.ctx)
			cancel()
			if err := wait(ctx, neverGiveUp); (err == nil) != tt.want {
				t.Errorf("wait returned %v, want success: %v", err, tt.want)
			}
		})
	}
}

// overloadedServer is a server whose probes fail.
type overloadedServer struct {
	InlineWatcher
	probes []time.Time
}

func (o *overloadedServer) Probe(context.Context) (string, error) {
	o.probes = append(o.probes, time.Now())
	return "", apierrors.NewTooManyRequests("overloaded", 7)
}

func (*overloadedServer) Polls() bool { return false }

// TestFailingProbesBackOff verifies that a pause is at least the server's Retry-After, and that pauses grow.
// Waits for the current state fail at once.
func TestFailingProbesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(t, Options{})
		f.list(10)
		server := &overloadedServer{}
		f.addStream(&inlineWatch{partition: f.partition, lw: server})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // f.ctx ends after a minute
		defer cancel()
		if err := f.WaitForVersion(ctx, "20", neverGiveUp); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitForVersion() = %v, want context.DeadlineExceeded", err)
		}
		synctest.Wait() // the last probe has ended
		for k := 1; k < len(server.probes); k++ {
			if pause := server.probes[k].Sub(server.probes[k-1]); pause < 7*time.Second {
				t.Errorf("pause %d is %v, want at least the Retry-After of 7s", k, pause)
			}
		}
		if got := len(server.probes); got < 10 || got > 25 {
			t.Errorf("%d probes in ten minutes, want one in about 30 seconds", got)
		}
		begun := time.Now()
		for range 3 {
			_, err := f.WaitUntilFresh(t.Context(), neverGiveUp)
			if !apierrors.IsTooManyRequests(err) || time.Since(begun) > 0 {
				t.Errorf("WaitUntilFresh() = %v after %v, want the server's error at once", err, time.Since(begun))
			}
		}
	})
}
