package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// run is the state of a command that follows types.
type run struct {
	Options
	ctx          context.Context
	tracker      *discovery.Tracker
	typeSelector *selector
	// mayGainTypes is set if types can appear that did not exist at the start.
	mayGainTypes bool
	screen       *screen
	status       *statusReporter
	unwatchable  *unwatchableTypes
	resources    []discovery.Resource // types that existed at the start
	client       dynamic.Interface
	initialRows  map[schema.GroupVersionResource]print.RowFormatter
	textPrinter  printer // for all types, if no tables are printed

	// firstTypeStarted fires when the informer of any type begins to watch for the first time.
	firstTypeStarted signal
	// initialObjectsReceived fires for each initial type when its initial objects have arrived.
	initialObjectsReceived map[schema.GroupVersionResource]signal
	// bufferedFeeds are the feeds that buffer events until the screen opens. The screen's lock guards the
	// slice.
	bufferedFeeds []*feed
}

// signal is a one-time notification.
type signal struct {
	done chan struct{}
	fire func()
}

func newSignal() signal {
	done := make(chan struct{})
	return signal{done, sync.OnceFunc(func() { close(done) })}
}

// follow follows the types until the context of the run ends.
func (r *run) follow(syncCtx context.Context) error {
	cancelMessage := r.status.printLater("Pending: waiting for discovery")
	err := r.tracker.WaitForSync(syncCtx)
	cancelMessage()
	if err != nil {
		return r.Explain(syncCtx, err)
	}
	groups, err := r.groups()
	if err != nil {
		return err
	}
	defer func() {
		shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), endTimeout)
		defer cancel()
		for _, p := range groups {
			if p.subscription != nil {
				p.subscription.Close() // Shutdown would print the queued events
			}
		}
		for _, p := range groups {
			// The requests in flight end immediately. Only a write can block, if nothing reads the output.
			_ = p.factory.Shutdown(shutdownCtx)
		}
	}()
	if r.printsTables() {
		r.loadInitialRows()
	}
	pending, err := r.acquire(groups)
	if err != nil {
		return err
	}
	if r.Events {
		r.screen.withLock(func() { r.screen.open = true })
	}
	for _, p := range groups {
		if err := p.factory.Start(context.WithoutCancel(r.ctx)); err != nil {
			return err
		}
		if err := r.subscribe(p); err != nil {
			return err
		}
	}
	if err := r.awaitInitial(syncCtx, pending); err != nil {
		return err
	}
	r.MarkRead()
	r.status.markSynced()
	r.openScreen()
	return r.wait()
}

func (r *run) stateChanged(before, after status.Status) {
	if !r.unwatchable.changed(after) {
		r.status.changed(before, after)
		return
	}
	// If this is the only type, the command ends with this error instead.
	if err := r.unwatchable.err([]schema.GroupVersionResource{after.GVR}); err != nil &&
		(r.mayGainTypes || len(r.resources) > 1) {
		r.status.printLine("warning: %s", print.OneSafeLine(err.Error()))
	}
}

// wait returns when the context ends, or when no followed type can be watched.
func (r *run) wait() error {
	initialTypes := make([]schema.GroupVersionResource, len(r.resources))
	for i, resource := range r.resources {
		initialTypes[i] = resource.GVR
	}
	for {
		select {
		case <-r.ctx.Done():
			return r.ctx.Err()
		case <-r.unwatchable.detected:
			if err := r.unwatchable.err(initialTypes); err != nil && !r.mayGainTypes {
				return err
			}
		}
	}
}

// awaitInitial waits until each initial type has synced, or is known to be unreadable or rejected. It returns
// an error if none has synced.
func (r *run) awaitInitial(syncCtx context.Context, pending []pendingInformer) error {
	if len(r.resources) == 0 {
		r.MarkRead() // the types may never be installed in this cluster
		return r.awaitAny(syncCtx)
	}
	done := func() {}
	if !r.Events { // with events, rows are being printed
		done = r.Progress(func() (int, int) { return syncedCount(pending), len(pending) })
	}
	var unsynced error
	for _, f := range pending {
		unsynced = errors.Join(unsynced, session.WaitForSync(syncCtx, f.Informer()))
	}
	for _, f := range pending {
		if f.Informer().HasSynced() {
			r.awaitInitialObjects(syncCtx, f.gvr)
		}
	}
	done()
	synced := syncedCount(pending)
	for _, f := range pending {
		f.Release()
	}
	if synced == 0 {
		return unsynced
	}
	return nil
}

func syncedCount(pending []pendingInformer) (synced int) {
	for _, f := range pending {
		if f.Informer().HasSynced() {
			synced++
		}
	}
	return synced
}

// awaitInitialObjects waits until the feed of a type has all initial objects.
func (r *run) awaitInitialObjects(syncCtx context.Context, gvr schema.GroupVersionResource) {
	select {
	case <-r.initialObjectsReceived[gvr].done:
	case <-syncCtx.Done():
	}
}

// awaitAny waits for the first type. It returns immediately if the selector has patterns.
func (r *run) awaitAny(syncCtx context.Context) error {
	if r.typeSelector.hasPatterns() {
		return nil
	}
	select {
	case <-r.firstTypeStarted.done:
		return nil
	case <-syncCtx.Done():
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: none of the types was installed within %v (--timeout)", session.ErrNotSynced,
		r.Timeout)
}

// openScreen prints the buffered events of the feeds, in the order of the requested types.
func (r *run) openScreen() {
	position := func(f *feed) int {
		i := slices.IndexFunc(r.resources,
			func(resource discovery.Resource) bool { return resource.GVR == f.gvr })
		if i < 0 {
			return len(r.resources)
		}
		return i
	}
	r.screen.withLock(func() {
		r.screen.open = true
		slices.SortStableFunc(r.bufferedFeeds, func(a, b *feed) int { return position(a) - position(b) })
		for _, f := range r.bufferedFeeds {
			f.printBuffered()
		}
		r.bufferedFeeds = nil
	})
}
