package filesource

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// followFixture is an informer of widgets. Its API server is a Source that applies changes of files.
type followFixture struct {
	dir      string
	source   *Source
	tracker  *discovery.Tracker
	informer *dynamicinformer.Informer

	mu struct {
		sync.Mutex
		events  []string        // since the last call of expect
		objects map[string]bool // that have been added and not deleted
		grown   chan struct{}
	}
}

func newFixture(t *testing.T, files map[string]string) *followFixture {
	t.Helper()
	return startFixture(t, writeTree(t, files))
}

// startFixture is newFixture for a directory.
func startFixture(t *testing.T, dir string) *followFixture {
	t.Helper()
	s := &followFixture{dir: dir}
	s.mu.grown, s.mu.objects = make(chan struct{}), map[string]bool{}
	var refresh func() // set before Follow is called
	s.source = openSource(t, Options{Paths: []string{s.dir}, TypesChanged: func() { refresh() }})
	var err error
	if s.tracker, err = discovery.NewTracker(s.source.Config(),
		discovery.TrackerOptions{DiscoveryLag: -1}); err != nil {
		t.Fatal(err)
	}
	refresh = s.tracker.Refresh
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: s.source.Config(),
		Types: s.tracker.Types()})
	must(t, err)
	if s.informer, err = factory.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: "widgets"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.record("add", obj) },
		UpdateFunc: func(_, obj any) { s.record("update", obj) },
		DeleteFunc: func(obj any) { s.record("delete", obj) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	// Both goroutines end with ctx.
	wg.Go(func() { _ = s.tracker.Run(ctx) })
	wg.Go(func() { s.source.Follow(ctx) })
	must(t, factory.Start(ctx))
	t.Cleanup(func() {
		_ = factory.Shutdown(context.Background())
		cancel()
		wg.Wait()
	})
	return s
}

func (s *followFixture) record(kind string, obj any) {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.events = append(s.mu.events, kind+" "+key)
	if s.mu.objects[key] = true; kind == "delete" {
		delete(s.mu.objects, key)
	}
	close(s.mu.grown)
	s.mu.grown = make(chan struct{})
}

// expect waits for events, and fails the test if others arrive. It considers the events since its last call.
func (s *followFixture) expect(t *testing.T, want ...string) {
	t.Helper()
	s.await(t, func() bool { return len(s.mu.events) >= len(want) })
	if diff := cmp.Diff(want, s.mu.events[:len(want)]); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.mu.events = s.mu.events[len(want):]
	s.mu.Unlock()
}

// expectObjects waits until the events have led to these objects. A type that gets another definition may
// deliver its objects anew in between.
func (s *followFixture) expectObjects(t *testing.T, want ...string) {
	t.Helper()
	s.await(t, func() bool { return slices.Equal(slices.Sorted(maps.Keys(s.mu.objects)), want) })
	s.mu.events = nil
	s.mu.Unlock()
}

// await waits until a condition holds, and returns with mu locked.
func (s *followFixture) await(t *testing.T, isReached func() bool) {
	t.Helper()
	deadline := time.NewTimer(5 * time.Minute) // for a busy machine
	defer deadline.Stop()
	for s.mu.Lock(); !isReached(); s.mu.Lock() {
		got, grown := slices.Clone(s.mu.events), s.mu.grown
		s.mu.Unlock()
		select {
		case <-grown:
		case <-deadline.C:
			t.Fatalf("events %q; problems %q", got, s.source.Problems())
		}
	}
}

// TestFollow verifies that handlers receive the changes of files that are written, replaced, moved and
// deleted.
func TestFollow(t *testing.T) {
	s := newFixture(t, map[string]string{"a.yaml": widgetCRD, "b.yaml": widget("a", "red")})
	at := func(name string) string { return filepath.Join(s.dir, name) }
	s.expect(t, "add web/a")
	writeFile(t, at("b.yaml"), widget("a", "green"))
	s.expect(t, "update web/a")
	// A coarse clock gives the replacement, of equal size, the time of the file.
	info, err := os.Stat(at("b.yaml"))
	must(t, err)
	writeFile(t, at("b.off"), widget("a", "olive"))
	must(t, errors.Join(os.Chtimes(at("b.off"), time.Time{}, info.ModTime()),
		os.Rename(at("b.off"), at("b.yaml"))))
	s.expect(t, "update web/a")
	writeFile(t, at("new/deep/c.yaml"), widget("c", "red"))
	s.expect(t, "add web/c")
	writeFile(t, at("new/deep/d.yaml"), widget("d", "red"))
	s.expect(t, "add web/d")
	must(t, os.RemoveAll(at("new")))
	s.expectObjects(t, "web/a")
	// Without its definition the type is inferred and keeps its objects.
	must(t, os.Rename(at("a.yaml"), at("a.off")))
	s.expect(t, "delete web/a", "add web/a")
	must(t, os.Rename(at("a.off"), at("a.yaml")))
	// The file is written in place, in two steps.
	f, err := os.OpenFile(at("b.yaml"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	for _, text := range []string{"---\n", widget("e", "red")} {
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	must(t, f.Close())
	s.expectObjects(t, "web/a", "web/e")
	// The type is removed with its objects, and recreated with them.
	must(t, os.Remove(at("b.yaml")))
	s.expectObjects(t)
	must(t, os.Remove(at("a.yaml")))
	writeFile(t, at("z.yaml"), widgetCRD+"---\n"+widget("z", "red"))
	s.expectObjects(t, "web/z")
}

// TestFollowLostDirectory verifies that objects are kept, with an error, while a named directory is gone, and
// that files are found again after it was recreated.
func TestFollowLostDirectory(t *testing.T) {
	deep := filepath.Join(t.TempDir(), "around", "deep")
	writeFile(t, filepath.Join(deep, "a.yaml"), widgetCRD+"---\n"+widget("a", "red"))
	s := startFixture(t, deep)
	s.expect(t, "add web/a")
	must(t, os.RemoveAll(filepath.Dir(deep)))
	for start := time.Now(); s.source.Err() == nil; time.Sleep(time.Millisecond) {
		if time.Since(start) > 5*time.Minute {
			t.Fatal("the lost directory is no error")
		}
	}
	s.expectObjects(t, "web/a")
	writeFile(t, filepath.Join(deep, "a.yaml"), widgetCRD+"---\n"+widget("b", "red"))
	s.expectObjects(t, "web/b")
	if err := s.source.Err(); err != nil {
		t.Errorf("after the directory was recreated: %v", err)
	}
}

// TestPauseAfter verifies that one delayed search causes no long pause.
func TestPauseAfter(t *testing.T) {
	for _, tt := range []struct{ search, last, want time.Duration }{
		{time.Millisecond, 0, 200 * time.Millisecond}, {2 * time.Second, time.Millisecond, 2 * time.Second},
		{20 * time.Millisecond, 30 * time.Millisecond, time.Second},
		{time.Second, time.Second, 5 * time.Second}, {time.Minute, time.Minute, time.Minute},
	} {
		if got := pauseAfter(tt.search, tt.last); got != tt.want {
			t.Errorf("pauseAfter(%v, %v) = %v, want %v", tt.search, tt.last, got, tt.want)
		}
	}
}
