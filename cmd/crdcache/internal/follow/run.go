package follow

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
)

type follower struct {
	Options
	ctx          context.Context
	tracker      *discovery.Tracker
	typeSelector *selector
	// mayGainTypes is set if the names can match types that are installed later.
	mayGainTypes bool
	screen       *screen
	status       *statusReporter
	unwatchable  *unwatchableTypes
	resources    []discovery.Resource // types that existed at the start
	client       dynamic.Interface
	initialRows  map[schema.GroupVersionResource]*print.Rows
	textPrinter  printer // for all types, if no tables are printed

	// firstTypeStarted fires when the informer of any type begins to watch for the first time.
	firstTypeStarted onceSignal
	// initialObjectsReceived has a signal for each initial type. It fires when the initial objects have
	// arrived.
	initialObjectsReceived map[schema.GroupVersionResource]onceSignal
	// bufferedFeeds buffer events until the screen opens. The screen's lock guards the slice.
	bufferedFeeds []*feed
}

type onceSignal struct {
	done chan struct{}
	fire func()
}

func newSignal() onceSignal {
	done := make(chan struct{})
	return onceSignal{done, sync.OnceFunc(func() { close(done) })}
}

func (r *follower) follow(syncCtx context.Context) error {
	message := time.AfterFunc(statusDelay, func() { r.status.printLine("Pending: waiting for discovery") })
	err := r.tracker.WaitForSync(syncCtx)
	message.Stop()
	if err != nil {
		return r.Explain(syncCtx, err)
	}
	groups, err := r.newGroups()
	if err != nil {
		return err
	}
	defer func() {
		shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), stopTimeout)
		defer cancel()
		for _, group := range groups {
			if group.subscription != nil {
				group.subscription.Close() // Shutdown would print the queued events
			}
		}
		for _, group := range groups {
			// The requests in flight end immediately. Only a write can block, if nothing reads the output.
			_ = group.factory.Shutdown(shutdownCtx)
		}
	}()
	if r.printsTables() {
		r.loadInitialRows()
	}
	pending, err := r.acquireInformers(groups)
	if err != nil {
		return err
	}
	if r.Events {
		r.screen.withLock(func() { r.screen.open = true })
	}
	for _, group := range groups {
		if err := group.factory.Start(context.WithoutCancel(r.ctx)); err != nil {
			return err
		}
		if err := r.subscribe(group); err != nil {
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

func (r *follower) stateChanged(before, after status.Status) {
	if !r.unwatchable.stateChanged(after) {
		r.status.stateChanged(before, after)
		return
	}
	// If this is the only type, the command ends with this error instead.
	if err := r.unwatchable.err([]schema.GroupVersionResource{after.GVR}); err != nil &&
		(r.mayGainTypes || len(r.resources) > 1) {
		r.status.printLine("warning: %s", print.OneSafeLine(err.Error()))
	}
}

// wait returns when the context ends or no type can be watched.
func (r *follower) wait() error {
	gvrOf := func(resource discovery.Resource) schema.GroupVersionResource { return resource.GVR }
	initialTypes := naming.Map(r.resources, gvrOf)
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

// awaitInitial waits until each initial type has synced or its error is known. It returns an error if no type
// has synced.
func (r *follower) awaitInitial(syncCtx context.Context, pending []*dynamicinformer.Handle) error {
	if len(r.resources) == 0 {
		r.MarkRead() // the types may never be installed in this cluster
		return r.awaitFirstType(syncCtx)
	}
	stopProgress := func() {}
	if !r.Events { // with events, rows are being printed
		stopProgress = r.Progress(func() (int, int) { return countSynced(pending), len(pending) })
	}
	informers := naming.Map(pending, (*dynamicinformer.Handle).Informer)
	syncErr := r.WaitForSync(syncCtx, informers...)
	for _, informer := range informers {
		if informer.HasSynced() {
			select {
			case <-r.initialObjectsReceived[informer.GVR()].done:
			case <-syncCtx.Done():
			}
		}
	}
	stopProgress()
	synced := countSynced(pending)
	for _, handle := range pending {
		handle.Release()
	}
	if synced == 0 {
		return syncErr
	}
	return nil
}

func countSynced(pending []*dynamicinformer.Handle) (synced int) {
	for _, handle := range pending {
		if handle.Informer().HasSynced() {
			synced++
		}
	}
	return synced
}

// awaitFirstType waits until a type is installed. With patterns it returns immediately.
func (r *follower) awaitFirstType(syncCtx context.Context) error {
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
func (r *follower) openScreen() {
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
