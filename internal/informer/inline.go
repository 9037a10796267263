package informer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/klog/v2"
)

// InlineWatcher is a ListerWatcher with watches that the caller's goroutine reads. A reflector has three
// goroutines for a watch, with their stacks and buffers, which are most of the cost of a quiet type. The
// reflector of an InlineWatcher therefore only lists.
type InlineWatcher interface {
	cache.ListerWatcher
	cache.ListerWatcherWithContext
	// WatchInline requests a watch and calls take for its events until the watch or ctx ends, or take returns
	// false. The last event can be an ERROR, for example if the server closed the watch immediately.
	// WatchInline returns an error if there was no watch, and the caller has to list again. WatchInline
	// pauses after failures, and can change options.
	WatchInline(ctx context.Context, options *metav1.ListOptions, take func(watch.Event) bool) error
	// CurrentVersion returns the resource version of the server. It retries with backoff until it succeeds or
	// ctx ends.
	CurrentVersion(ctx context.Context) (string, error)
	// Probe is CurrentVersion without retries. It can be called while WatchInline runs.
	Probe(ctx context.Context) (string, error)
	// ListMetadata returns a page of a list of the selected objects, with their metadata at least. It can be
	// called while WatchInline runs.
	ListMetadata(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
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

// inlineWatch lists with a reflector, and then watches without it, by the same rules.
type inlineWatch struct {
	*partition
	lw InlineWatcher
	// version is the last observed resource version; empty before the first list.
	version string
	// canWatch is true if a watch can continue from version.
	canWatch       bool
	inVersionOrder bool               // events arrive in the order of resource versions
	endList        context.CancelFunc // ends the reflector's round of list and watch
	// collectedObjects has the objects of a complete watch-list; nil if the reflector has listed.
	collectedObjects *collectedList
	// The rest is guarded by Informer.mu.

	// bookmarkDue is set if the open watch, or the next one, is a short one that receives a bookmark soon.
	bookmarkDue bool
	lists       listRequests
}

// listAndWatch watches from the stored version, or lists, until that fails or ctx ends. It keeps the stack
// small while it waits for events, because most watches are idle.
func (w *inlineWatch) listAndWatch(ctx context.Context, r *cache.Reflector) error {
	for ctx.Err() == nil {
		if !w.canWatch || w.mustList() {
			if err := w.list(ctx, r); err != nil || !w.canWatch {
				return err
			}
			continue
		}
		round := &inlineRound{inlineWatch: w}
		w.inVersionOrder, w.canWatch = !isUnordered(w.version), false
		err := w.lw.WatchInline(ctx, w.options(), round.eventHandler(ctx))
		if err != nil || !round.continues(ctx) {
			return err
		}
		w.canWatch = true
	}
	return nil
}

// list lists with the reflector.
func (w *inlineWatch) list(ctx context.Context, r *cache.Reflector) error {
	ctx, w.endList = context.WithCancel(ctx)
	defer w.endList()
	w.canWatch = false
	return r.ListAndWatchWithContext(ctx)
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
	minTimeout := max(w.informer.options.MinWatchTimeout, minWatchDuration)
	seconds := int64((minTimeout + rand.N(minTimeout)).Seconds())
	if w.beginsCatchUp() {
		seconds = catchUpSeconds
	}
	return &metav1.ListOptions{ResourceVersion: w.version, TimeoutSeconds: &seconds,
		AllowWatchBookmarks: true}
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
	if event.Type == watch.Bookmark {
		w.recordBookmark()
	}
}

// applyEvent applies an event to the store. version is the resource version of its object.
func (p *partition) applyEvent(event watch.Event, version string) error {
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

// inlineStore is the store of the reflector of an inlineWatch, which only lists.
type inlineStore struct{ *inlineWatch }

// Replace implements cache.ReflectorStore, and ends the reflector's round.
func (s inlineStore) Replace(list []any, resourceVersion string) error {
	if c := s.collectedObjects; c != nil {
		s.collectedObjects = nil
		list = c.list()
	}
	if err := s.partition.Replace(list, resourceVersion); err != nil {
		return err
	}
	s.version = resourceVersion
	s.recordList()
	s.lw.ListStored(s.lastList.changed)
	s.canWatch = true
	s.endList()
	return nil
}

// inlineLister is the ListerWatcher of the reflector of an inlineWatch. Its lists are not older than the
// watch events since the last list, which the reflector has not received.
type inlineLister struct {
	InlineWatcher
	*inlineWatch
}

// IsWatchListSemanticsUnSupported returns true if the ListerWatcher has no watch-lists.
func (l inlineLister) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(l.lw)
}

// ListWithContext implements cache.ListerWithContext.
func (l inlineLister) ListWithContext(ctx context.Context,
	options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		l.beginList()
		l.polled = l.lw.Polls()
	}
	l.collectedObjects = nil
	l.setMinVersion(&options)
	return l.lw.ListWithContext(ctx, options)
}

// WatchWithContext implements cache.WatcherWithContext.
func (l inlineLister) WatchWithContext(ctx context.Context,
	options metav1.ListOptions) (watch.Interface, error) {
	l.beginList()
	l.collectedObjects = nil
	l.setMinVersion(&options)
	return l.collect(ctx, &options)
}

// setMinVersion requires a list that is at least as recent as the cached objects and as the version for which
// callers wait. A reflector begins with resource version 0, which accepts any state, even if the store has
// objects.
func (l inlineLister) setMinVersion(options *metav1.ListOptions) {
	acceptsAny := options.ResourceVersion == "0" && l.version != ""
	if (acceptsAny || !isUnordered(options.ResourceVersion)) &&
		options.ResourceVersionMatch != metav1.ResourceVersionMatchExact {
		l.informer.mu.Lock()
		defer l.informer.mu.Unlock()
		options.ResourceVersion = laterVersion(l.version, l.informer.goalLocked())
	}
}
