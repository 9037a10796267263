package informer

import (
	"context"
	"errors"
	goruntime "runtime"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// TestLateHandlerAllocatesOnlyPointers checks that the informer allocates only a list of pointers for a new
// handler, not notifications, and that it does so outside of its lock.
func TestLateHandlerAllocatesOnlyPointers(t *testing.T) {
	const objects, pointer = 20_000, 16
	f := newFeed(t, Options{})
	all := make([]*unstructured.Unstructured, objects)
	for n := range all {
		all[n] = object(strconv.Itoa(n), n+1)
	}
	f.list(objects, all...)
	entered, release := make(chan struct{}), make(chan struct{})
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	_, err := f.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		select {
		case entered <- struct{}{}:
			<-release
		case <-release:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	goruntime.ReadMemStats(&after)
	close(release)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*objects*pointer {
		t.Errorf("adding a handler with %d objects allocates %d bytes, want at most 2 pointers each", objects,
			got)
	}
}

// noRequests has the methods of an InlineWatcher that a test does not use.
type noRequests struct{}

func (noRequests) CurrentVersion(context.Context) (string, error) { return "", errors.ErrUnsupported }

func (noRequests) Probe(context.Context) (string, error) { return "", errors.ErrUnsupported }

func (noRequests) ListMetadata(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.ErrUnsupported
}

func (noRequests) ListPart(context.Context, metav1.ListOptions, func(*metav1.ListOptions),
	func(runtime.Object) bool) (runtime.Object, error) {
	return nil, errors.ErrUnsupported
}

func (noRequests) Polls() bool { return false }

func (noRequests) ListReceived(error) {}

func (noRequests) ListStored(bool) {}

func (noRequests) RelistRequested() {}

// interruptibleWatcher is an InlineWatcher without events. It counts the requested relists.
type interruptibleWatcher struct {
	*recordingListerWatcher
	noRequests
	interrupts chan struct{}
	relists    int
	onRelist   func()
}

func (q *interruptibleWatcher) RelistRequested() {
	q.relists++
	q.onRelist()
}

func (q *interruptibleWatcher) Interrupt() { q.interrupts <- struct{}{} }

func (q *interruptibleWatcher) WatchInline(ctx context.Context, _ *metav1.ListOptions,
	_ func(watch.Event) bool) error {
	select {
	case <-q.interrupts:
	case <-ctx.Done():
	}
	return nil
}

// TestLateHandlerCausesAList verifies that a handler that is added late causes another list.
func TestLateHandlerCausesAList(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := &interruptibleWatcher{
		recordingListerWatcher: &recordingListerWatcher{seen: make(chan metav1.ListOptions, 100)},
		interrupts:             make(chan struct{}, 100), onRelist: cancel}
	i := New(q, Options{Format: store.NewIdentities(nil)})
	added := make(chan error, 1)
	go func() { // ended by the sync
		if err := i.WaitForSync(ctx); err != nil {
			added <- err
			return
		}
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{})
		added <- err
	}()
	i.RunWithContext(ctx) // until the informer lists for the handler
	if err := <-added; err != nil || q.relists != 1 {
		t.Errorf("%d relists and the error %v, want 1 and nil", q.relists, err)
	}
}
