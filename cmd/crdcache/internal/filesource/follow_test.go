package filesource

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
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
		events []string
		grown  chan struct{}
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
	s.mu.grown = make(chan struct{})
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
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
	close(s.mu.grown)
	s.mu.grown = make(chan struct{})
}

// expect waits for events, and fails the test if others arrive. It considers the events since its last call.
func (s *followFixture) expect(t *testing.T, want ...string) {
	t.Helper()
	deadline := time.NewTimer(5 * time.Minute) // for a busy machine
	defer deadline.Stop()
	for {
		s.mu.Lock()
		got, grown := append([]string(nil), s.mu.events...), s.mu.grown
		if len(got) >= len(want) {
			s.mu.events = s.mu.events[len(want):]
		}
		s.mu.Unlock()
		if len(got) >= len(want) {
			if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			return
		}
		select {
		case <-grown:
		case <-deadline.C:
			t.Fatalf("events %q, want %q; problems %q", got, want, s.source.Problems())
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
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, at("b.off"), widget("a", "olive"))
	if err := errors.Join(os.Chtimes(at("b.off"), time.Time{}, info.ModTime()),
		os.Rename(at("b.off"), at("b.yaml"))); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "update web/a")
	writeFile(t, at("new/deep/c.yaml"), widget("c", "red"))
	s.expect(t, "add web/c")
	writeFile(t, at("new/deep/d.yaml"), widget("d", "red"))
	s.expect(t, "add web/d")
	if err := os.RemoveAll(at("new")); err != nil {
		t.Fatal(err)
	}
	s.expectInAnyOrder(t, "delete web/c", "delete web/d")
	// Without its definition the type is inferred and keeps its objects.
	if err := os.Rename(at("a.yaml"), at("a.off")); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "delete web/a", "add web/a")
	if err := os.Rename(at("a.off"), at("a.yaml")); err != nil {
		t.Fatal(err)
	}
	// The file is written in place, in two steps.
	f, err := os.OpenFile(at("b.yaml"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"---\n", widget("e", "red")} {
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "add web/e")
	// The type is removed with its objects, and recreated with them.
	if err := os.Remove(at("b.yaml")); err != nil {
		t.Fatal(err)
	}
	s.expectInAnyOrder(t, "delete web/a", "delete web/e")
	if err := os.Remove(at("a.yaml")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, at("z.yaml"), widgetCRD+"---\n"+widget("z", "red"))
	s.expect(t, "add web/z")
}

// expectInAnyOrder is expect for events in any order.
func (s *followFixture) expectInAnyOrder(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.mu.events) < len(want) {
		grown := s.mu.grown
		s.mu.Unlock()
		select {
		case <-grown:
		case <-t.Context().Done():
		}
		s.mu.Lock()
	}
	got := strings.Join(s.mu.events[:len(want)], ", ")
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("events %s, want %q", got, want)
		}
	}
	s.mu.events = s.mu.events[len(want):]
}

// TestFollowLostDirectory verifies that files are found again after their parent directory was deleted and
// recreated.
func TestFollowLostDirectory(t *testing.T) {
	deep := filepath.Join(t.TempDir(), "around", "deep")
	fill := func() { writeFile(t, filepath.Join(deep, "a.yaml"), widgetCRD+"---\n"+widget("a", "red")) }
	fill()
	s := startFixture(t, deep)
	s.expect(t, "add web/a")
	if err := os.RemoveAll(filepath.Dir(deep)); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "delete web/a")
	fill()
	s.expect(t, "add web/a")
}
