package informer

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// persistedObjects is a PersistedState with the objects that the function objects returns.
type persistedObjects struct {
	version string
	objects func() []*unstructured.Unstructured
	// calls receives the calls of OnServingChange and OnConfirmed.
	calls chan string
}

func newPersistedObjects(version string, objects func() []*unstructured.Unstructured) *persistedObjects {
	return &persistedObjects{version: version, objects: objects, calls: make(chan string, 10)}
}

func (k *persistedObjects) Load(_ context.Context, responded bool) *RestoredContent {
	restored := &RestoredContent{Versions: map[string]string{"": k.version}}
	if !responded {
		for _, o := range k.objects() {
			restored.Items = append(restored.Items, o)
		}
	}
	return restored
}

func (k *persistedObjects) OnServingChange(unconfirmed bool) {
	if unconfirmed {
		k.calls <- "shown"
	} else {
		k.calls <- "hidden"
	}
}

func (k *persistedObjects) OnConfirmed() { k.calls <- "confirmed" }

// fixedServer is an InlineWatcher of a server with fixed objects, which returns its version once release is
// closed.
type fixedServer struct {
	plainListWatch
	noRequests
	version string
	release chan struct{}
	// versionRequested is closed when the version is requested.
	versionRequested chan struct{}
}

func (a *fixedServer) CurrentVersion(ctx context.Context) (string, error) {
	close(a.versionRequested)
	select {
	case <-a.release:
		return a.version, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func newFixedServer(version string, objects ...*unstructured.Unstructured) *fixedServer {
	return &fixedServer{version: version, release: make(chan struct{}), versionRequested: make(chan struct{}),
		plainListWatch: plainListWatch{cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
				list := &unstructured.UnstructuredList{}
				for _, o := range objects {
					list.Items = append(list.Items, *o)
				}
				list.SetResourceVersion(version)
				return list, nil
			},
			WatchFuncWithContext: func(context.Context,
				metav1.ListOptions) (watch.Interface, error) {
				return watch.NewFake(), nil
			},
		}}}
}

// resume runs an incarnation until stop is called. listed is closed once it has listed or was confirmed.
func (f *feed) resume(state PersistedState, server *fixedServer) (listed <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	ended, done := make(chan struct{}), make(chan struct{})
	go func() { // ended by stop, or the feed
		defer close(ended)
		if err := f.RunPartition(ctx, func() { close(done) },
			Partition{ListerWatcher: server, State: state}); err != nil {
			f.Error(err)
		}
	}()
	return done, func() {
		cancel()
		<-ended
	}
}

func (f *feed) await(done <-chan struct{}) {
	f.Helper()
	select {
	case <-done:
	case <-f.ctx.Done():
		f.Fatal("timed out waiting for the channel to be closed")
	}
}

// TestWritesWhileResuming verifies that after a user has written to the cache, it has no checkpoint.
func TestWritesWhileResuming(t *testing.T) {
	f := newIdleFeed(t, Options{})
	state := newPersistedObjects(
		"8", func() []*unstructured.Unstructured { return []*unstructured.Unstructured{object("a", 4)} })
	server := newFixedServer("8")
	listed, stop := f.resume(state, server)
	defer stop()
	f.await(server.versionRequested)
	if c := f.PersistableContent(); c.State != nil || !c.Resuming {
		t.Errorf("PersistableContent() of unconfirmed objects = %v, resuming %v, want nil, true", c.State,
			c.Resuming)
	}
	f.ok(f.GetStore().Add(object("mine", 7)))
	close(server.release)
	f.await(listed)
	if c := f.PersistableContent(); c.State != nil || c.Resuming {
		t.Errorf("PersistableContent() after a user's write = %v, resuming %v, want nil, false", c.State,
			c.Resuming)
	}
}

// TestResumingHoldsNothingElse verifies that only the store references the restored objects.
func TestResumingHoldsNothingElse(t *testing.T) {
	f := newIdleFeed(t, Options{})
	var held weak.Pointer[unstructured.Unstructured]
	state := newPersistedObjects("8", func() []*unstructured.Unstructured {
		o := object("a", 4)
		held = weak.Make(o)
		return []*unstructured.Unstructured{o}
	})
	server := newFixedServer("8")
	_, stop := f.resume(state, server)
	defer stop()
	f.await(server.versionRequested)
	runtime.GC()
	if held.Value() == nil {
		t.Fatal("the cache does not reference the restored object")
	}
	f.ok(f.GetStore().Delete(object("a", 4)))
	if runtime.GC(); held.Value() != nil {
		t.Error("the restored object is referenced by more than the store")
	}
}

// TestBriefWatchesCauseNoList verifies that nothing is listed if only some watches end before the bookmark.
// An event that is older than the restored objects, here for -1, causes a list.
func TestBriefWatchesCauseNoList(t *testing.T) {
	for ended, lists := range map[int]bool{1: false, maxConfirmationWatches - 1: false,
		maxConfirmationWatches: true, -1: true} {
		f := newIdleFeed(t, Options{})
		state := newPersistedObjects(
			"8", func() []*unstructured.Unstructured { return []*unstructured.Unstructured{object("a", 4)} })
		server := newFixedServer("9", object("a", 4))
		close(server.release)
		var watches, listed int
		list := server.ListWithContextFunc
		server.ListWithContextFunc = func(ctx context.Context,
			options metav1.ListOptions) (apiruntime.Object, error) {
			listed++
			return list(ctx, options)
		}
		server.WatchFuncWithContext = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(2, false)
			if ended < 0 {
				w.Modify(object("a", 7))
			}
			if watches++; watches <= ended {
				w.Stop()
			} else {
				w.Action(watch.Bookmark, object("", 9))
			}
			return w, nil
		}
		done, stop := f.resume(state, server)
		f.await(done)
		stop()
		if (listed > 0) != lists {
			t.Errorf("after %d ended watches: %d lists, want some: %v", ended, listed, lists)
		}
	}
}

func (a *fixedServer) Probe(context.Context) (string, error) { return a.version, nil }

func (*fixedServer) Interrupt() {}

func (a *fixedServer) WatchInline(ctx context.Context, options *metav1.ListOptions,
	take func(watch.Event) bool) error {
	w, err := a.WatchWithContext(ctx, *options)
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.ResultChan():
			if !ok || !take(event) {
				return nil
			}
		}
	}
}

// TestListsAreNotOlder verifies that the first list of a reflector, which a server can answer from any state
// of its cache, is not older than the stored objects.
func TestListsAreNotOlder(t *testing.T) {
	p := &partition{incarnation: &incarnation{informer: New(nil, Options{})}}
	for want, w := range map[string]*inlineWatch{
		"0": {partition: p}, "1500": {partition: p, version: "1500"}, "1600": {partition: p, version: "1600", listed: "1"},
		"": {partition: p, version: "1700", listed: "1", isLost: true}, // the newest
	} {
		if got := w.listVersion("0"); got != want {
			t.Errorf("the version of a list is %q, want %q", got, want)
		}
	}
}

// TestTakeoverDoesNotResume verifies that an informer that runs again restores no persisted objects, because
// its handlers have received the objects of its previous run.
func TestTakeoverDoesNotResume(t *testing.T) {
	f := newIdleFeed(t, Options{})
	log, _ := f.recordEvents()
	first := newFixedServer("10", object("a", 5), object("b", 6))
	listed, stop := f.resume(nil, first)
	f.await(listed)
	stop()
	state := newPersistedObjects("8", func() []*unstructured.Unstructured {
		return []*unstructured.Unstructured{object("a", 4), object("old", 7)}
	})
	next := newFixedServer("8", object("a", 5), object("c", 9))
	close(next.release)
	listed, stop = f.resume(state, next)
	defer stop()
	f.await(listed)
	f.flush()
	got := log.take()
	slices.Sort(got)
	expect(t, "events", got, []string{"add c9", "initial a5", "initial b6", "lost ns/b b6", "update a5 a5"})
	if len(state.calls) > 0 {
		t.Errorf("OnServingChange or OnConfirmed was called: %s, want no call", <-state.calls)
	}
}
