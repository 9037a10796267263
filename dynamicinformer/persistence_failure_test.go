package dynamicinformer

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/persist"
)

// hangingBackend is a backend whose methods block until release is closed.
type hangingBackend struct {
	*memoryBackend
	release chan struct{}
}

func (h hangingBackend) Open(ctx context.Context, view persistence.View) (persistence.StoredContent, error) {
	<-h.release
	return h.memoryBackend.Open(ctx, view)
}

// shortenDiskTimeout reduces the time that informers wait for the disk.
func shortenDiskTimeout(t *testing.T) {
	previous := persist.DiskTimeout
	persist.DiskTimeout = 20 * time.Millisecond
	t.Cleanup(func() { persist.DiskTimeout = previous })
}

// TestHangingPersistence verifies that an informer syncs and stops although its backend does not answer, and
// that the status reports the backend. When the backend answers, the content is closed.
func TestHangingPersistence(t *testing.T) {
	shortenDiskTimeout(t)
	server, h := newServer(t), hangingBackend{newMemoryBackend(), make(chan struct{})}
	server.Create(t, widgets, widget("a", "one"))
	f := newFactory(t, server, Options{Persistence: h, PersistenceInterval: time.Millisecond})
	i := startSynced(t, f)
	if err := i.Persistence().Err; !errors.Is(err, persist.ErrSlowDisk) {
		t.Errorf("after the sync, Persistence().Err = %v, want ErrSlowDisk", err)
	}
	if err := f.Shutdown(longContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := i.Persistence().Err; !errors.Is(err, persist.ErrSlowDisk) {
		t.Errorf("after the stop, Persistence().Err = %v, want ErrSlowDisk", err)
	}
	close(h.release)
	await(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		v := h.contents[i.options.view(widgets)]
		return v != nil && !v.claimed
	})
}

// TestLateLoad verifies that content that a disk returns too late is ignored.
func TestLateLoad(t *testing.T) {
	for name, options := range storages {
		t.Run(name, func(t *testing.T) {
			server, h := newServer(t), hangingBackend{newMemoryBackend(), make(chan struct{})}
			server.Create(t, widgets, widget("a", "one"))
			persistWidgets(t, server, h.memoryBackend, options)
			shortenDiskTimeout(t)
			server.AddFaults(fault(widgetsPath, "list", http.StatusServiceUnavailable))
			f := newFactory(t, server, Options{Persistence: h, Defaults: options})
			i := mustInformer(t, f, widgets)
			if err := f.Start(longContext(t)); err != nil {
				t.Fatal(err)
			}
			await(t, func() bool { return errors.Is(i.Persistence().Err, persist.ErrSlowDisk) })
			close(h.release)
			await(t, func() bool { return i.persister.Idle() })
			server.Repair()
			i.Retry()
			waitFor(t, i, func(s status.Status) bool { return s.State == status.Synced && !s.Stale })
			if keys := i.GetStore().ListKeys(); !slices.Equal(keys, []string{"a/one"}) {
				t.Errorf("the cache has the keys %v, want a/one", keys)
			}
		})
	}
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPersistenceRecovers verifies that failed saves are retried.
func TestPersistenceRecovers(t *testing.T) {
	server, s := newServer(t), newMemoryBackend()
	s.failure = errors.New("the disk is full")
	server.Create(t, widgets, widget("a", "one"))
	f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond})
	i := startSynced(t, f)
	await(t, func() bool { return i.Persistence().Failures > 1 })
	if status := i.Persistence(); !errors.Is(status.Err, s.failure) || status.Saves > 0 ||
		status.Checkpoint != (persistence.Checkpoint{}) {
		t.Errorf("Persistence() = %+v, want the backend's error and no checkpoint", status)
	}
	s.mu.Lock()
	s.failure = nil
	s.mu.Unlock()
	await(t, func() bool {
		status := i.Persistence()
		return status.Err == nil && status.Saves > 0 && status.Checkpoint.Objects == 1
	})
}
