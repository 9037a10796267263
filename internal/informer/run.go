package informer

import (
	"context"
	"errors"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/store"
)

var errNoListerWatcher = errors.New("there is no ListerWatcher to run")

// Run works like RunWithContext with a stop channel.
func (i *Informer) Run(stopCh <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext runs the informer until the context ends, and returns when all its goroutines have ended.
// Like client-go's informer, it discards queued notifications (call Flush first to deliver them).
// Further calls log and return.
func (i *Informer) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if i.lw == nil {
		utilruntime.HandleErrorWithContext(ctx, errNoListerWatcher, "Unable to run the informer")
		return
	}
	if err := i.RunPartition(ctx, nil, Partition{ListerWatcher: i.lw}); err != nil {
		klog.FromContext(ctx).Info("An informer runs only once, ignoring another call",
			"informer", i.syncName())
		return
	}
	i.Stop()
	<-i.stopped
}

// beginIncarnation starts an incarnation.
func (i *Informer) beginIncarnation(ctx context.Context, cancel context.CancelFunc) (*incarnation, error) {
	g, hidden, err := i.makeCurrent(ctx, cancel)
	if hidden != nil {
		hidden.OnServingChange(false)
	}
	if err == nil {
		g.startResyncs(ctx)
		g.startVerification(ctx)
	}
	return g, err
}

// makeCurrent is beginIncarnation without calls outside of the informer. It removes the unconfirmed objects
// of the previous incarnation. hidden is the PersistedState that had loaded them, or nil.
func (i *Informer) makeCurrent(ctx context.Context,
	cancel context.CancelFunc) (g *incarnation, hidden PersistedState, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.mu.state.checkRun(); err != nil {
		return nil, nil, err
	}
	first := i.mu.state == StateNew
	i.mu.state = StateRunning
	g = &incarnation{
		informer:     i,
		cancel:       cancel,
		transform:    i.mu.transform,
		onError:      i.mu.watchFailure,
		logger:       klog.FromContext(ctx),
		pendingLists: 1,
	}
	if g.onError == nil {
		g.onError = cache.DefaultWatchErrorHandler
	}
	hidden = i.dropUnconfirmedLocked() // of the previous incarnation
	i.restartLateHandlersLocked()
	i.mu.partitions = nil
	i.mu.current = g
	i.workers.Add(1)
	if first {
		// Ended by Stop.
		i.workers.Go(func() { i.mutations.Run(i.stopping) })
	}
	return g, hidden, nil
}

// endIncarnation ends the incarnation, which can no longer write to the store.
func (i *Informer) endIncarnation(g *incarnation) {
	defer i.workers.Done()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current == g {
		i.mu.current = nil
	}
	if i.mu.state == StateRunning {
		i.mu.state = StateIdle
	}
}

// reflect lists and watches a partition, which may have objects already, with backoff, until ctx ends.
func (i *Informer) reflect(ctx context.Context, p *partition) {
	w := &inlineWatch{partition: p, lw: p.ListerWatcher}
	i.mu.Lock()
	restored := p.resumeVersion
	i.mu.Unlock()
	if restored != "" {
		w.startConfirmation(ctx, restored)
	}
	i.addStream(w)
	defer i.removeStream(w)
	w.repeat(ctx)
}

// reflector returns a reflector for handlers of errors. It never runs.
func (w *inlineWatch) reflector() *cache.Reflector {
	description := w.informer.options.ObjectDescription
	return cache.NewReflectorWithOptions(&cache.ListWatch{}, nil, cache.NewStore(nil),
		cache.ReflectorOptions{Name: description, TypeDescription: description, Logger: &w.logger})
}

// PanicReporter is implemented by an InlineWatcher that records panics in a round of list and watch.
type PanicReporter interface{ Panicked(value any) }

func (w *inlineWatch) panicked(_ context.Context, value any) {
	if reporter, ok := w.lw.(PanicReporter); ok {
		reporter.Panicked(value)
	}
}

// repeat repeats rounds of list and watch until ctx ends.
func (w *inlineWatch) repeat(ctx context.Context) {
	i := w.informer
	var delays roundPauses
	for {
		panicked := !w.round(ctx)
		if !waitOrDone(ctx, i.clock, delays.next(i, panicked)) {
			return
		}
	}
}

// roundPauses has the pauses after rounds that end and after rounds that panic. They are created on
// demand, because the first round of most types does not end.
type roundPauses struct{ afterEnd, afterPanic wait.DelayFunc }

// next returns the pause after a round.
func (d *roundPauses) next(i *Informer, panicked bool) time.Duration {
	delay, backoff := &d.afterEnd, i.options.Backoff
	if panicked {
		delay, backoff = &d.afterPanic, standardBackoff()
	}
	if *delay == nil {
		*delay = backoff.DelayWithReset(i.clock, backoffReset)
	}
	return (*delay)()
}

// round lists the type and watches it until the watch ends. It returns false if a function of the user
// (the ListerWatcher or an error handler) has panicked and utilruntime.ReallyCrash, which is on by default,
// is off. As in client-go the type is then listed again. Panics of transforms and index functions only affect
// their object (see store.RecoverError).
func (w *inlineWatch) round(ctx context.Context) (ok bool) {
	defer utilruntime.HandleCrashWithContext(ctx, w.panicked)
	// The end of the context is not a failure.
	if err := w.listAndWatch(ctx); err != nil && ctx.Err() == nil {
		w.onError(ctx, w.reflector(), err)
	}
	return true
}

// waitOrDone waits, and returns false if the context ends.
func waitOrDone(ctx context.Context, c clock.Clock, d time.Duration) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return ctx.Err() == nil
	}
}

// Stop ends the informer: the running incarnation, and each handler after its current call. It discards
// queued notifications, and delivers no deletions. It is idempotent, and does not wait (see Stopped).
func (i *Informer) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.state == StateStopped {
		return
	}
	close(i.stopping)
	i.mu.handlers.End()
	i.mu.state = StateStopped
	if i.mu.current != nil {
		i.mu.current.cancel()
		i.mu.current = nil
	}
	// Ended by the workers, which are all stopping.
	go func() {
		i.workers.Wait()
		close(i.stopped)
	}()
}

// Forget removes all objects of the previous incarnation. Each handler receives its queued notifications, and
// then an OnDelete with cache.DeletedFinalStateUnknown for each object. HasSynced is false until the first
// list of the next incarnation, which can start immediately.
//
// It fails with ErrRunning while an incarnation runs and with ErrStopped after the stop. It does not wait.
func (i *Informer) Forget() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.mu.state.checkRun(); err != nil {
		return err
	}
	i.dropUnconfirmedLocked()
	i.restartLateHandlersLocked()
	i.mu.partitions = nil
	changes := i.clearLocked()
	i.releaseWaitsLocked()
	i.notifyListLocked(nil, delivery.List{Changes: changes})
	i.resetSyncedLocked()
	i.mu.handlers.ForgetLate()
	return nil
}

// Suspend keeps the objects of the previous incarnation, because they may exist although the server does not
// serve them now. HasSynced is false until the first list of the next incarnation. Handlers then receive the
// difference: updates of the objects that still exist, additions and deletions.
//
// It fails with ErrRunning while an incarnation runs and with ErrStopped after the stop. It does not wait.
func (i *Informer) Suspend() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.mu.state.checkRun(); err != nil {
		return err
	}
	if i.resetSyncedLocked() {
		i.mu.log.reset(i.store.Snapshot().ResourceVersion()) // events are missed from now on
	}
	return nil
}

// resetSyncedLocked makes HasSynced false until the next list, and reports whether it was true.
func (i *Informer) resetSyncedLocked() bool {
	if !i.HasSynced() {
		return false
	}
	i.synced.Store(delivery.NewSyncPoint())
	i.mu.handlers.ResetSynced()
	return true
}

// Discard removes all objects of a stopped informer without calling handlers. HasSynced is false afterwards.
func (i *Informer) Discard() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clearLocked()
	i.synced.Store(delivery.NewSyncPoint())
}

func (i *Informer) clearLocked() store.Differences {
	for {
		if changes, ok := i.store.Replace(i.store.PrepareAll(nil), ""); ok {
			i.mu.log.reset("")
			return changes
		} // indexes were added concurrently
	}
}
