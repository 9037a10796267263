package informer

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/watchlist"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/store"
)

// inlineWatch lists and watches by the rules of client-go's reflector: see listAndWatch.
type inlineWatch struct {
	*partition
	lw InlineWatcher
	// version is the last observed resource version, listed that of the last list; empty before the first.
	// isLost is set if the server does not have listed.
	version, listed string
	isLost          bool
	isPaged         bool // the server has divided a list from version 0 into pages
	// canWatch is true if a watch can continue from version.
	canWatch       bool
	inVersionOrder bool // events arrive in the order of resource versions
	// The rest is guarded by Informer.mu.

	// bookmarkDue is set if the open watch, or the next one, is a short one that receives a bookmark soon.
	bookmarkDue bool
	lists       listRequests
	// awaited is the version with which the grown selection is complete, or restored objects are current;
	// empty if they are. confirmations counts the watches for restored objects.
	awaited       string
	confirmations int
}

// listAndWatch watches from the stored version, or lists, until that fails or ctx ends. It keeps the stack
// small while it waits for events, because most watches are idle.
func (w *inlineWatch) listAndWatch(ctx context.Context) error {
	for ctx.Err() == nil {
		if extended, err := w.extend(ctx); err != nil {
			return err
		} else if extended {
			w.recordProgress(ctx)
			continue
		}
		w.countConfirmation(ctx)
		if !w.canWatch || w.mustList() {
			if err := w.list(ctx); err != nil || !w.canWatch {
				return err
			}
			continue
		}
		round := &inlineRound{inlineWatch: w}
		w.inVersionOrder, w.canWatch = !isUnordered(w.version), false
		err := w.lw.WatchInline(ctx, w.options(), round.eventHandler(ctx))
		if w.canWatch = err == nil && round.continues(ctx); w.canWatch {
			continue
		}
		if !w.isConfirming() || ctx.Err() != nil {
			return err
		}
		w.stopConfirmation(ctx, cmp.Or(err, round.failure))
	}
	return nil
}

// list stores a watch-list, or else a list. If it stores nothing and returns no error, a round follows.
func (w *inlineWatch) list(ctx context.Context) error {
	w.canWatch = false
	if clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient) &&
		!watchlist.DoesClientNotSupportWatchListSemantics(w.lw) {
		if c, falls := w.watchList(ctx); c.complete {
			return w.store(func() error { return w.storeCollected(c) }, c.version)
		} else if !falls {
			return nil
		}
	}
	list, err := w.listPages(ctx, w.listVersion("0"))
	if isVersionLost(err) {
		w.isLost = true
		list, err = w.listPages(ctx, "")
	}
	if err != nil {
		return fmt.Errorf("failed to list %s: %w", w.informer.options.ObjectDescription, err)
	}
	objects, version, err := objectsOf(list)
	if err != nil {
		return err
	}
	return w.store(func() error { return w.Replace(objects, version) }, version)
}

// objectsOf returns the objects and the resource version of a list.
func objectsOf(list runtime.Object) (objects []any, version string, err error) {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", err
	}
	extracted, err := meta.ExtractListWithAlloc(list)
	objects = naming.Map(extracted, func(object runtime.Object) any { return object })
	return objects, m.GetResourceVersion(), err
}

// watchList collects the initial events of a watch-list. falls is true if a list has to replace it.
func (w *inlineWatch) watchList(ctx context.Context) (c *collectedList, falls bool) {
	w.beginList()
	c = &collectedList{transform: w.Transformer()}
	if count := w.informer.store.Snapshot().Len(); w.streamsList() {
		c.streamed = make(map[string]bool, count)
	} else if w.isComplete() { // otherwise each partition would allocate space for all objects
		c.items = make([]any, 0, count)
	}
	var failure error
	err := w.lw.WatchInline(ctx, &metav1.ListOptions{ResourceVersion: w.listVersion(""),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, SendInitialEvents: new(true),
		AllowWatchBookmarks: true, TimeoutSeconds: w.watchTimeout()}, func(event watch.Event) bool {
		if event.Type == watch.Error {
			failure = apierrors.FromObject(event.Object)
			return false
		}
		w.collectEvent(ctx, c, event)
		return !c.complete && !c.falls && ctx.Err() == nil
	})
	err = cmp.Or(err, failure)
	w.isLost = w.isLost || isVersionLost(err)
	return c, c.falls || err != nil && ctx.Err() == nil && !isVersionLost(err) &&
		!utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err)
}

// extend lists a part that a GrowingSelection lacks, adds its objects, and reports whether there was one. It
// returns false if everything has to be listed.
//
// The stream has reached a version, and continues there with the grown selection. The part is listed at that
// version or later. A listed object that is not newer has not changed since, so it is added. The stream
// delivers the changes of the others: they are awaited.
func (w *inlineWatch) extend(ctx context.Context) (bool, error) {
	s, ok := w.Selection.(GrowingSelection)
	if !ok || !w.canWatch || !naming.IsVersion(w.version) || w.lw.Polls() {
		return false, nil
	}
	w.informer.mu.Lock()
	part, isMissing := s.Part()
	isMissing = isMissing && len(w.lists.next) == 0
	w.informer.mu.Unlock()
	if !isMissing {
		return false, nil
	}
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return w.lw.ListPart(ctx, options, part.Tweak, part.Has)
	})
	p.PageSize = w.informer.options.WatchListPageSize
	list, _, err := p.ListWithAlloc(ctx, metav1.ListOptions{ResourceVersion: w.version,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if isVersionLost(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to list a part of %s: %w", w.informer.options.ObjectDescription, err)
	}
	objects, version, err := objectsOf(list)
	if err != nil || !naming.IsVersion(version) || naming.IsOlder(version, w.version) {
		return false, err
	}
	listed, err := w.itemsOf(objects)
	if err != nil || listed.untransformed != nil {
		return false, err
	}
	var prepared []store.PreparedItem
	awaited := w.awaited
	for n := range listed.items {
		k := listed.itemWithKey(n)
		switch version := store.VersionOf(k.Item); {
		case !naming.IsVersion(version):
			return false, nil
		case naming.IsOlder(w.version, version):
			awaited = strings.Clone(laterVersion(cmp.Or(awaited, version), version))
		default:
			w.informer.mutations.AddObject(k.Item)
			prepared = append(prepared, w.informer.store.Prepare(k))
		}
	}
	return w.commitPart(part, prepared, awaited)
}

// commitPart grows the selection by a part, stores the prepared objects that are not stored yet, and notifies
// the handlers. If it cannot store all, it requests a list of everything and returns false.
func (w *inlineWatch) commitPart(part SelectionPart, prepared []store.PreparedItem,
	awaited string) (bool, error) {
	i := w.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != w.incarnation {
		return false, ErrIncarnationOver
	}
	part.Select()
	w.awaited = awaited
	var changes []store.Change
	done := true
	for _, next := range prepared {
		stored, found := i.store.Snapshot().Get(next.Key)
		if found && store.SameUID(stored, next.Item) || !w.selects(next.Item) {
			continue
		}
		if done = !found; done { // or two objects have one key
			_, done = i.store.Put(next) // or indexes were added
		}
		if !done {
			w.requestListLocked()
			break
		}
		changes = append(changes, store.Change{Key: next.Key, New: next.Item})
	}
	i.mu.log.reset(i.store.Snapshot().ResourceVersion())
	w.recordListLocked(w.partition, delivery.List{Changes: delivery.ChangeSlice(changes)}, false)
	return done, nil
}

// recordProgress records that the selection is complete, or the restored objects are current, unless the
// stream is before the awaited version.
func (w *inlineWatch) recordProgress(ctx context.Context) {
	isConfirming := w.isConfirming()
	if reached, _ := hasReached(w.version, cmp.Or(w.awaited, w.version)); !reached {
		return
	}
	w.informer.mu.Lock()
	w.awaited = ""
	if !isConfirming {
		w.Selection.RecordList()
	}
	w.informer.mu.Unlock()
	if isConfirming {
		w.deliverConfirmed(ctx, w.version)
		return
	}
	w.OnListed()
}

// listPages lists all pages from a resource version. Only lists from 0 and of the newest state have several,
// because a server answers others from its cache in one page.
func (w *inlineWatch) listPages(ctx context.Context, version string) (runtime.Object, error) {
	p := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		if options.Continue == "" {
			w.beginList()
			w.polled = w.lw.Polls()
		}
		return w.lw.ListWithContext(ctx, options)
	}))
	if size := w.informer.options.WatchListPageSize; size != 0 || !isUnordered(version) && !w.isPaged {
		p.PageSize = size
	}
	list, paged, err := p.ListWithAlloc(ctx, metav1.ListOptions{ResourceVersion: version})
	w.isPaged = w.isPaged || paged && version == "0"
	return list, err
}

// listVersion returns the version of a list. A list is at least as recent as the cached objects and as the
// version for which callers wait. first is the version of the first list of an empty cache.
func (w *inlineWatch) listVersion(first string) string {
	switch {
	case w.isLost:
		return ""
	case w.listed == "" && (first == "" || w.version == ""):
		return first
	}
	w.informer.mu.Lock()
	defer w.informer.mu.Unlock()
	return laterVersion(w.version, w.informer.goalLocked())
}

// isVersionLost reports whether the server does not have a requested version, or not yet.
func isVersionLost(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// store stores a list.
func (w *inlineWatch) store(replace func() error, version string) error {
	if err := w.measure(replace); err != nil {
		return fmt.Errorf("unable to sync list result: %w", err)
	}
	w.version, w.listed, w.isLost, w.canWatch = version, version, false, true
	w.informer.mu.Lock()
	endRequests(w.lists.running, true)
	w.lists.running, w.awaited = nil, ""
	w.informer.mu.Unlock()
	w.lw.ListStored(w.lastList.changed)
	return nil
}
