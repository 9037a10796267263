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
	"k8s.io/klog/v2"
)

// InlineWatcher is a ListerWatcher whose watches need no goroutine but that of who reads them. A reflector
// has three for a watch, and stacks and buffers with each; where there are many types on which little
// happens, these are most of what a type costs. So the reflector of an InlineWatcher only lists.
type InlineWatcher interface {
	cache.ListerWatcher
	cache.ListerWatcherWithContext
	// WatchInline asks for a watch and passes its events to take, on the goroutine of the caller, until the
	// watch or ctx ends, or take returns false. The last event may be of type ERROR; it is where the watch
	// was closed at once and has brought nothing. The error says that there is no watch, and that all is to
	// be listed again. It paces itself, and may change options.
	WatchInline(ctx context.Context, options *metav1.ListOptions, take func(watch.Event) bool) error
}

// inline lists with a reflector, and watches by itself what follows the list, by the rules of the reflector.
type inline struct {
	*generation
	lw     InlineWatcher
	target target
	// version is the resource version that was seen last; empty before the first list. latest is one that
	// some of the target had come to before, or empty.
	version, latest string
	// resumes says that the target has come to version already, so that the first round has no list.
	resumes bool
	// ordered says that what comes is in the order of resource versions.
	ordered bool
	// endList ends the reflector's part of a round; nil when it has.
	endList context.CancelFunc
	// collected is what a watch-list has brought that has come to its end; nil: the reflector has collected
	// it, or listed.
	collected *collected
}

// listAndWatch lists, and watches until it has to be listed again, or ctx ends.
func (w *inline) listAndWatch(ctx context.Context, r *cache.Reflector) error {
	if w.resumes {
		w.resumes = false
		return w.watch(ctx)
	}
	listing, cancel := context.WithCancel(ctx)
	defer cancel()
	w.endList = cancel
	if err := r.ListAndWatchWithContext(listing); err != nil || w.endList != nil {
		return err
	}
	return w.watch(ctx)
}

// watch watches, again and again, until all has to be listed again. The functions that wait in it are short,
// so that the stacks of quiet types are.
func (w *inline) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		round := &inlineRound{inline: w}
		w.ordered = !unordered(w.version)
		if err := w.lw.WatchInline(ctx, w.options(), round.take(ctx)); err != nil {
			return err
		}
		if !round.goesOn(ctx) {
			return nil
		}
	}
	return nil
}

// inlineRound is one watch.
type inlineRound struct {
	*inline
	failure error // what an ERROR event said
}

// take returns what each event is passed to.
func (r *inlineRound) take(ctx context.Context) func(watch.Event) bool {
	return func(event watch.Event) bool {
		if event.Type == watch.Error {
			r.failure = apierrors.FromObject(event.Object)
			return false
		}
		r.apply(ctx, event)
		return ctx.Err() == nil
	}
}

// goesOn reports whether another watch follows, and not another list.
func (r *inlineRound) goesOn(ctx context.Context) bool {
	if r.failure == nil || apierrors.IsTooManyRequests(r.failure) {
		return true
	}
	if ctx.Err() == nil && !apierrors.IsResourceExpired(r.failure) && !apierrors.IsGone(r.failure) {
		klog.FromContext(ctx).Info("Warning: watch ended with error", "reflector", r.informer.reflectorName(),
			"err", r.failure)
	}
	return false
}

// leastWatch is how long watches are asked to last at least.
const leastWatch = 5 * time.Minute

// options are those of a watch that goes on from what was seen.
func (w *inline) options() *metav1.ListOptions {
	least := max(w.informer.options.MinWatchTimeout, leastWatch)
	seconds := int64((least + rand.N(least)).Seconds())
	return &metav1.ListOptions{ResourceVersion: w.version, TimeoutSeconds: &seconds,
		AllowWatchBookmarks: true}
}

// apply has an event take effect.
func (w *inline) apply(ctx context.Context, event watch.Event) {
	object, ok := w.understand(ctx, event.Object)
	if !ok {
		return
	}
	version := object.GetResourceVersion()
	var err error
	switch event.Type {
	case watch.Added:
		err = w.target.Add(event.Object)
	case watch.Modified:
		err = w.target.Update(event.Object)
	case watch.Deleted:
		err = w.target.Delete(event.Object)
	case watch.Bookmark:
		err = w.target.Bookmark(version)
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unable to apply watch event", "reflector",
			w.informer.reflectorName(), "type", event.Type)
	}
	if w.ordered = w.ordered || event.Type != watch.Added; w.ordered {
		w.version = version
	}
}

// unordered reports whether a watch from a resource version begins with what is there, in any order.
func unordered(version string) bool { return version == "" || version == "0" }

// errTable is for a table, which the server was not asked for.
var errTable = errors.New("it is a Table")

func isTable(object runtime.Object) bool {
	gvk := object.GetObjectKind().GroupVersionKind()
	return gvk.Kind == "Table" && gvk.Group == metav1.GroupName
}

// inlineStore is the store of the reflector of an inline: the list is all that it stores.
type inlineStore struct {
	cache.ReflectorStore
	*inline
}

// Replace implements cache.ReflectorStore, and ends the reflector's part.
func (s inlineStore) Replace(list []any, resourceVersion string) error {
	if c := s.collected; c != nil {
		s.collected = nil
		list = c.list()
	}
	if err := s.ReflectorStore.Replace(list, resourceVersion); err != nil {
		return err
	}
	s.version = resourceVersion
	s.endList()
	s.endList = nil
	return nil
}

// inlineLister is what that reflector lists through. It asks for nothing older than what has been watched
// since its last list, of which the reflector does not know.
type inlineLister struct {
	InlineWatcher
	*inline
}

// ListWithContext implements cache.ListerWithContext.
func (l inlineLister) ListWithContext(ctx context.Context,
	options metav1.ListOptions) (runtime.Object, error) {
	l.collected = nil
	l.renew(&options)
	return l.lw.ListWithContext(ctx, options)
}

// WatchWithContext implements cache.WatcherWithContext.
func (l inlineLister) WatchWithContext(ctx context.Context,
	options metav1.ListOptions) (watch.Interface, error) {
	l.collected = nil
	l.renew(&options)
	return l.collect(ctx, &options)
}

func (l inlineLister) renew(options *metav1.ListOptions) {
	// Zero asks for anything that a server has in its cache. A reflector begins with that, also where the
	// content was there before it.
	oldest := options.ResourceVersion == "0" && l.version != ""
	if (oldest || !unordered(options.ResourceVersion)) &&
		options.ResourceVersionMatch != metav1.ResourceVersionMatchExact {
		options.ResourceVersion = later(l.version, l.latest)
	}
}
