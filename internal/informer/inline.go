package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/naming"
)

// InlineWatcher lists, and watches with the caller's goroutine. A reflector has three goroutines for a watch,
// with their stacks and buffers, which are most of the cost of a quiet type.
type InlineWatcher interface {
	cache.ListerWithContext
	// WatchInline requests a watch and calls take for its events until the watch or ctx ends, or take returns
	// false. The last event can be an ERROR, for example if the server closed the watch immediately.
	// WatchInline returns an error if there was no watch, and the caller has to list again. WatchInline
	// pauses after failures, and can change options.
	WatchInline(ctx context.Context, options *metav1.ListOptions, take func(watch.Event) bool) error
	// CurrentVersion returns the resource version of the server. It retries until it succeeds or ctx ends.
	CurrentVersion(ctx context.Context) (string, error)
	// Probe is CurrentVersion without retries. It can be called while WatchInline runs.
	Probe(ctx context.Context) (string, error)
	// ListMetadata returns a page of a list with at least metadata. It can be called while WatchInline runs.
	ListMetadata(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	// ListPart returns a page of a list with the selectors of tweak, filtered by accepts. It does not retry.
	ListPart(ctx context.Context, options metav1.ListOptions, tweak func(*metav1.ListOptions),
		accepts func(runtime.Object) bool) (runtime.Object, error)
	// RelistRequested records that the next list is a relist that the informer needs. It must not block.
	RelistRequested()
	// Polls reports whether lists replace watches, because the type cannot be watched. WatchInline then waits
	// until the next list is due, and returns an error.
	Polls() bool
	// ListReceived is called before a list is stored, and thus before the informer has synced. incomplete is
	// not nil if the cache will lack listed objects.
	ListReceived(incomplete error)
	// ListStored is called when a list has been stored. changed reports whether it changed the cache.
	ListStored(changed bool)
	// Interrupt ends the open watch, or the next one if none is open: WatchInline returns nil. It does not
	// wait, and can be called while WatchInline runs.
	Interrupt()
}

// inlineRound is one watch.
type inlineRound struct {
	*inlineWatch
	failure error // of an ERROR event
}

// eventHandler returns a func that applies events. The func returns false to end the watch.
func (r *inlineRound) eventHandler(ctx context.Context) func(watch.Event) bool {
	return func(event watch.Event) bool {
		if event.Type == watch.Error {
			r.failure = apierrors.FromObject(event.Object)
			return false
		}
		if r.isConfirming() { // an event that is out of order, or has no object, proves nothing
			m, err := meta.Accessor(event.Object)
			if err != nil || isTable(event.Object) || naming.IsOlder(m.GetResourceVersion(), r.version) {
				r.failure = fmt.Errorf("a %s event does not follow version %s", event.Type, r.version)
				return false
			}
		}
		r.apply(ctx, event)
		return ctx.Err() == nil
	}
}

// continues reports whether another watch follows. Otherwise another list does.
func (r *inlineRound) continues(ctx context.Context) bool {
	if r.failure == nil || apierrors.IsTooManyRequests(r.failure) {
		return true
	}
	if ctx.Err() == nil && !apierrors.IsResourceExpired(r.failure) && !apierrors.IsGone(r.failure) {
		klog.FromContext(ctx).Info("Warning: watch ended with error", "reflector",
			r.informer.options.ObjectDescription, "err", r.failure)
	}
	return false
}

const minWatchDuration = 5 * time.Minute

// options returns the options of a watch from the last observed version.
func (w *inlineWatch) options() *metav1.ListOptions {
	options := &metav1.ListOptions{ResourceVersion: w.version, TimeoutSeconds: w.watchTimeout(),
		AllowWatchBookmarks: true}
	if w.beginsCatchUp() {
		options.TimeoutSeconds = &catchUpSeconds
	}
	return options
}

func (w *inlineWatch) watchTimeout() *int64 {
	minTimeout := max(w.informer.options.MinWatchTimeout, minWatchDuration)
	return new(int64((minTimeout + rand.N(minTimeout)).Seconds()))
}

func (w *inlineWatch) apply(ctx context.Context, event watch.Event) {
	object, ok := w.metadataOf(ctx, event.Object)
	if !ok {
		return
	}
	version := object.GetResourceVersion()
	if err := w.applyEvent(event, version); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unable to apply watch event", "reflector",
			w.informer.options.ObjectDescription, "type", event.Type)
	}
	if w.inVersionOrder = w.inVersionOrder || event.Type != watch.Added; w.inVersionOrder {
		w.version = version
	}
	if w.awaited != "" {
		w.recordProgress(ctx)
	}
	if event.Type == watch.Bookmark {
		w.informer.mu.Lock()
		w.bookmarkDue = false // the next one can take a minute
		w.informer.mu.Unlock()
	}
}

// applyEvent applies an event to the store. version is the resource version of its object.
func (p *partition) applyEvent(event watch.Event, version string) error {
	if p.clientGoMetrics == nil {
		return p.storeEvent(event, version)
	}
	return p.measure(func() error { return p.storeEvent(event, version) })
}

func (p *partition) storeEvent(event watch.Event, version string) error {
	switch event.Type {
	case watch.Added, watch.Modified:
		return p.Add(event.Object)
	case watch.Deleted:
		return p.Delete(event.Object)
	case watch.Bookmark:
		return p.Bookmark(version)
	}
	return nil
}

// isUnordered reports whether a watch from a resource version begins with the existing objects, in any order.
func isUnordered(version string) bool { return version == "" || version == "0" }

var errTable = errors.New("the server sent a Table")

func isTable(object runtime.Object) bool {
	gvk := object.GetObjectKind().GroupVersionKind()
	return gvk.Kind == "Table" && gvk.Group == metav1.GroupName
}
