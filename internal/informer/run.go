package informer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/internal/store"
)

// errNoListerWatcher is for an Informer that was made for RunParts and is asked to Run, and for a part
// without one.
var errNoListerWatcher = errors.New("there is no ListerWatcher to run")

// Run is RunWithContext with a stop channel.
func (i *Informer) Run(stopCh <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext runs the informer from start to stop: it returns when the context has ended, every handler
// call has returned and no goroutine is left. Like client-go's it throws away what waits in the queues then
// (call Flush before to have it delivered), and can be called once: later calls log and return.
func (i *Informer) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if i.lw == nil {
		utilruntime.HandleErrorWithContext(ctx, errNoListerWatcher, "Unable to run the informer")
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := i.begin(ctx, cancel, StateFresh)
	if err != nil {
		klog.FromContext(ctx).Info("An informer runs only once, ignoring another call",
			"informer", i.syncName())
		return
	}
	defer func() {
		i.Stop()
		<-i.stopped
	}()
	defer i.end(g)
	i.reflect(ctx, g, source{target: g, lw: i.lw}, g.check)
}

// begin makes the next generation the one that may write, if the informer is in one of some states. The first
// one starts the handlers.
func (i *Informer) begin(ctx context.Context, cancel context.CancelFunc, from ...State) (*generation, error) {
	g, hidden, err := i.take(ctx, cancel, from)
	if hidden != nil {
		hidden.Shows(false)
	}
	return g, err
}

// take is begin. It returns who showed what the generation before has not confirmed; nil: nobody did.
func (i *Informer) take(ctx context.Context, cancel context.CancelFunc,
	from []State) (g *generation, hidden Past, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	next, err := step(i.mu.state, inputRun)
	if err != nil {
		return nil, nil, err
	}
	fresh := i.mu.state == StateFresh
	if !slices.Contains(from, i.mu.state) {
		return nil, nil, ErrStarted
	}
	i.mu.state = next
	i.mu.generations++
	g = &generation{
		informer:  i,
		cancel:    cancel,
		transform: i.mu.transform,
		onError:   i.mu.watchFailure,
		check:     i.mu.resyncCheck,
		logger:    klog.FromContext(ctx),
		unlisted:  1,
	}
	if g.onError == nil {
		g.onError = cache.DefaultWatchErrorHandler
	}
	hidden = i.dropUnconfirmedLocked() // which the generation before has not confirmed
	i.mu.wholeOf, i.mu.parts = nil, nil
	i.mu.current = g
	i.workers.Add(1)
	if fresh {
		// Ended by Stop.
		i.workers.Go(func() { i.mutations.Run(i.stopping) })
		for _, r := range i.mu.handlers {
			i.startLocked(r)
		}
	}
	return g, hidden, nil
}

// end takes the right to write from the generation.
func (i *Informer) end(g *generation) {
	defer i.workers.Done()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current == g {
		i.mu.current = nil
	}
	if next, err := step(i.mu.state, inputEnd); err == nil {
		i.mu.state = next
	}
}

// source is what a reflector lists and watches through, and where that goes.
type source struct {
	// target is the generation or a part of it.
	target target
	lw     cache.ListerWatcher
	// version is what the target has come to already; empty: everything is to be listed.
	version string
	// latest is what some of it has come to, before which nothing is listed again; empty where that is
	// version.
	latest string
}

// target is where a reflector writes to.
type target interface {
	cache.TransformingStore
	cache.ReflectorBookmarkStore
}

// reflect lists and watches, again and again with a growing pause, until the context ends.
func (i *Informer) reflect(ctx context.Context, g *generation, from source, resync time.Duration) {
	// The reflector knows what to do with objects that are not of the type.
	if direct, ok := from.lw.(InlineWatcher); ok && i.options.ExampleObject == nil {
		i.reflectInline(ctx, g, &inline{
			generation: g, lw: direct, target: from.target, version: from.version, latest: from.latest,
			resumes: from.version != "",
		}, resync)
		return
	}
	to, lw := cache.ReflectorStore(from.target), from.lw
	if direct, ok := lw.(cache.ListerWatcherWithContext); ok && from.version != "" {
		continued := &resumed{target: from.target, ListerWatcherWithContext: direct, version: from.version,
			latest: from.latest, answers: true}
		to, lw = continued, continued
	}
	r := i.newReflector(ctx, g, to, lw, resync)
	if from.target == target(g) {
		i.reflector.Store(r)
	}
	i.repeat(ctx, g, &rounds{Reflector: r, lw: from.lw, run: r.ListAndWatchWithContext})
}

// reflectInline is reflect for what can be watched without the reflector.
func (i *Informer) reflectInline(ctx context.Context, g *generation, w *inline, resync time.Duration) {
	if resync > 0 {
		defer g.startResyncs(ctx)()
	}
	i.reflector.Store(nil)
	r := i.newReflector(ctx, g, inlineStore{w.target, w}, inlineLister{w.lw, w}, 0)
	i.repeat(ctx, g, &rounds{Reflector: r, lw: w.lw,
		run: func(ctx context.Context) error { return w.listAndWatch(ctx, r) }})
}

// startResyncs has handlers be told again of everything, now and then, until ctx ends. It returns what waits
// for that.
func (g *generation) startResyncs(ctx context.Context) (wait func()) {
	var resyncing sync.WaitGroup
	resyncing.Go(func() { g.resyncs(ctx) }) // ended by ctx
	return resyncing.Wait
}

func (i *Informer) newReflector(ctx context.Context, g *generation, target cache.ReflectorStore,
	lw cache.ListerWatcher, resync time.Duration) *cache.Reflector {
	r := cache.NewReflectorWithOptions(lw, i.options.ExampleObject, target, cache.ReflectorOptions{
		Logger:          &g.logger,
		Name:            i.reflectorName(),
		TypeDescription: i.options.ObjectDescription,
		ResyncPeriod:    resync,
		MinWatchTimeout: i.options.MinWatchTimeout,
		Clock:           untilDone(ctx, i.clock),
		Backoff:         i.options.Backoff,
	})
	r.ShouldResync = g.shouldResync
	r.WatchListPageSize = i.options.WatchListPageSize
	return r
}

// rounds are the rounds of list and watch of a reflector.
type rounds struct {
	*cache.Reflector
	lw  cache.ListerWatcher
	run func(context.Context) error
}

// PanicReporter is a ListerWatcher that is called when a round of list and watch has panicked.
type PanicReporter interface{ Panicked(value any) }

// panicked reports a panic of a round.
func (r *rounds) panicked(_ context.Context, value any) {
	if reporter, ok := r.lw.(PanicReporter); ok {
		reporter.Panicked(value)
	}
}

// repeat lists and watches, again and again, until ctx ends.
func (i *Informer) repeat(ctx context.Context, g *generation, r *rounds) {
	var delays delays
	for {
		panicked := !g.listAndWatch(ctx, r)
		if !pause(ctx, i.clock, delays.next(i, panicked)) {
			return
		}
	}
}

// delays are the pauses between rounds, of those that end and of those in which something panics. They come
// into being with the first round that does: that of most types lasts.
type delays struct{ afterEnd, afterPanic wait.DelayFunc }

// next returns the pause after a round.
func (d *delays) next(i *Informer, panicked bool) time.Duration {
	of, backoff := &d.afterEnd, i.options.Backoff
	if panicked {
		of, backoff = &d.afterPanic, standardBackoff()
	}
	if *of == nil {
		*of = backoff.DelayWithReset(i.clock, backoffReset)
	}
	return (*of)()
}

// listAndWatch lists and watches once. It returns false when a function of the user panicked (a key function,
// an error handler) and utilruntime.ReallyCrash, which is on by default, is off. As in client-go the type is
// then listed again, after client-go's pause. Panics of transforms and index functions only concern their
// object (see store.Recover).
func (g *generation) listAndWatch(ctx context.Context, r *rounds) (ok bool) {
	defer utilruntime.HandleCrashWithContext(ctx, r.panicked)
	// What the end of the context breaks off has not failed.
	if err := r.run(ctx); err != nil && ctx.Err() == nil {
		g.onError(ctx, r.Reflector, err)
	}
	return true
}

func (i *Informer) reflectorName() string {
	if name := i.options.Identifier.Name(); name != "" {
		return name
	}
	return i.options.ObjectDescription
}

// pause waits and reports whether the context still lives.
func pause(ctx context.Context, c clock.Clock, d time.Duration) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return ctx.Err() == nil
	}
}

// Stop ends the informer for good: the running generation, and every handler after the call at hand. It does
// not wait (see Stopped), so that handlers may call it; it may be called again. What waits in the queues is
// thrown away, and no deletions are delivered.
func (i *Informer) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.mu.state
	next, err := step(before, inputStop)
	if err != nil || before == StateStopped {
		return
	}
	for _, r := range i.mu.handlers {
		i.dismissLocked(r)
	}
	i.mu.state = next
	if i.mu.current != nil {
		i.mu.current.cancel()
		i.mu.current = nil
	}
	close(i.stopping)
	// Ended by the workers, which have all been told to stop; no other can begin.
	go func() {
		i.workers.Wait()
		close(i.stopped)
	}()
}

// Forget ends what the past generation showed: the cache is emptied; each handler gets what is still
// queued for it and then, once for each object it was shown, an OnDelete with cache.DeletedFinalStateUnknown;
// and HasSynced turns false again, for the informer and its handlers, until the next generation's first list.
// The next generation may begin at once: what it delivers queues up behind.
//
// It fails with ErrRunning while a generation runs and with ErrStopped after the stop. It does not wait.
func (i *Informer) Forget() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, err := step(i.mu.state, inputForget); err != nil {
		return err
	}
	i.dropUnconfirmedLocked()
	changes := i.clearLocked()
	i.tellOfLocked(listing{changes: changeList(changes)})
	if i.synced.Load().reached() {
		i.synced.Store(newSyncPoint())
		for _, r := range i.mu.handlers {
			r.synced.Store(newSyncPoint())
		}
	}
	return nil
}

// clearLocked empties the store.
func (i *Informer) clearLocked() []store.Change {
	i.mu.wholeOf, i.mu.parts = nil, nil
	for {
		if changes, ok := i.store.Replace(i.store.PrepareAll(nil), ""); ok {
			i.mu.log.reset("")
			return changes // indexers may be added at any time, but hardly again and again
		}
	}
}
