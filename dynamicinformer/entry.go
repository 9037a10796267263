package dynamicinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/naming"
)

// entryState is the phase of an entry.
//
//	NotStarted ──Start──▶ Running ──last release──▶ Lingering ──▶ Ended
//	  │                     │  ▲──────claim───────────┘             ▲
//	  └─last release────────┴──── its context ends, Shutdown ───────┘
type entryState int

const (
	// entryNotStarted: the informer has not been started.
	entryNotStarted entryState = iota
	// entryRunning: the informer runs and has claims.
	entryRunning
	// entryLingering: the informer runs without claims, until Options.Linger has passed.
	entryLingering
	// entryEnded: the informer has stopped or is stopping. Lookups do not return it.
	entryEnded
)

// Causes of the end of an informer, for its status.
var (
	errReleased    = errors.New("all handles were released")
	errFactoryShut = errors.New("the factory was shut down")
)

// entryKey identifies an entry. Its options are interned: many entries share few large values.
type entryKey struct {
	gvr     schema.GroupVersionResource
	options unique.Handle[optionsKey]
	// ownedByFactory marks an informer that the factory itself uses. It runs until Shutdown,
	// independently of the contexts of Start.
	ownedByFactory bool
}

func entryKeyOf(gvr schema.GroupVersionResource, options ResourceOptions) entryKey {
	return entryKey{gvr: gvr, options: unique.Make(options.key())}
}

type entry struct {
	key      entryKey
	options  string // as in Status.Options
	informer *Informer
	done     chan struct{} // closed when a started informer has ended

	// Factory.mu guards the following fields.

	ctx    context.Context // nil before the start
	cancel context.CancelCauseFunc
	// handles counts all handles, reacquiring and required only the handles with these options.
	handles, reacquiring, required int
	// lingerTimer ends the entry when it fires. It is nil unless the entry lingers.
	lingerTimer *time.Timer
}

// state returns the phase. The caller holds Factory.mu.
func (e *entry) state() entryState {
	switch {
	case e.informer.IsStopped(), e.ctx != nil && e.ctx.Err() != nil:
		return entryEnded
	case e.ctx == nil:
		return entryNotStarted
	case e.handles == 0:
		return entryLingering
	default:
		return entryRunning
	}
}

type acquireRequest struct {
	key     entryKey
	options ResourceOptions
	// start runs the informer immediately if Start has been called, instead of at the next Start.
	start bool
	// reacquires means that the holder asks for a new informer after this one has stopped.
	reacquires bool
}

// findOrMake finds or creates the requested informer and counts the claim. All lookups use it, so that none
// returns an ended entry. It adds missing indexes without a lock. If the informer stops during the call,
// findOrMake retries with a new one.
func (f *Factory) findOrMake(request acquireRequest) (*Handle, error) {
	for {
		h, err := f.claim(request)
		if err != nil {
			return nil, err
		}
		if err = h.Informer().addMissingIndexes(request.options); err == nil {
			return h, nil
		}
		h.Release()
		if !errors.Is(err, ErrStopped) {
			return nil, fmt.Errorf("dynamicinformer: acquiring %s: %w", formatGVR(request.key.gvr), err)
		}
	}
}

// claim counts a claim on the existing entry or a new one. It creates the informer without a lock, because
// that calls user code: selectors and sets of indexes.
func (f *Factory) claim(request acquireRequest) (*Handle, error) {
	if h, err := f.claimEntry(request, nil); h != nil || err != nil {
		return h, err
	}
	registry := f.typeRegistry
	if registry == nil {
		registry = f.customTypes.registry(request.key.gvr)
	}
	created, err := newInformer(f.deps, request.key.gvr, request.options, registry)
	if err != nil {
		return nil, err
	}
	if registry != nil && f.customTypes != nil {
		created.followType = f.customTypes.follow
	}
	if request.key.ownedByFactory {
		// The status has the consequence of a failure. It has not started, so that this succeeds.
		_ = created.core.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	}
	return f.claimEntry(request, created)
}

// claimEntry counts a claim on the existing entry, or else on a new one for created; nil without both.
func (f *Factory) claimEntry(request acquireRequest, created *Informer) (*Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isShutDown() {
		return nil, ErrShutdown
	}
	e, ok := f.mu.entries[request.key]
	if ok && e.state() == entryEnded {
		f.dropLocked(e)
		ok = false
	}
	if !ok {
		if created == nil {
			return nil, nil
		}
		e = f.addLocked(request, created)
	}
	h := &Handle{factory: f, entry: e, required: request.options.required(), reacquires: request.reacquires}
	e.addClaim(h, 1)
	e.stopLinger()
	if request.key.ownedByFactory || request.start && f.mu.startCtx != nil && f.mu.startCtx.Err() == nil {
		f.startLocked(e)
	}
	return h, nil
}

// addClaim adds a claim, or removes it if delta is -1.
func (e *entry) addClaim(h *Handle, delta int) {
	e.handles += delta
	if h.reacquires {
		e.reacquiring += delta
	}
	if h.required {
		e.required += delta
		e.informer.health.Require(e.required > 0)
	}
}

func (f *Factory) addLocked(request acquireRequest, i *Informer) *entry {
	i.health.Require(request.options.required())
	if !request.key.isDefinition() {
		f.aggregator.Join(i.health)
	}
	e := &entry{key: request.key, options: i.Status().Options, informer: i, done: make(chan struct{})}
	f.mu.entries[e.key] = e
	return e
}

// startLocked starts an informer that was not started, with the context of the latest Start. An
// informer that the factory owns runs until Shutdown.
func (f *Factory) startLocked(e *entry) {
	if e.state() != entryNotStarted {
		return
	}
	ctx := f.mu.startCtx
	if e.key.ownedByFactory {
		ctx = f.ctx
	}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	f.mu.runningEntries[e] = struct{}{}
	f.reserveMetricsLocked(e)
	go f.run(e.ctx, e) // ended by the context of Start, by Shutdown, or by the last Release
}

// metricsOwner is the informer that reports client-go's metrics of a type.
type metricsOwner struct {
	id    cache.InformerNameAndResource
	entry *entry
}

// reserveMetricsLocked lets an informer report client-go's metrics of its type, unless another one does.
func (f *Factory) reserveMetricsLocked(e *entry) {
	owner, found := f.mu.metrics[e.key.gvr]
	if f.options.InformerName == nil || e.key.ownedByFactory || found && owner.entry.state() != entryEnded {
		return
	}
	if !found {
		owner.id = f.options.InformerName.WithResource(e.key.gvr)
	}
	owner.entry = e
	f.mu.metrics[e.key.gvr] = owner
	e.informer.core.ReportMetrics(owner.id)
}

func (f *Factory) run(ctx context.Context, e *entry) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.mu.runningEntries, e)
		if f.mu.entries[e.key] != e {
			f.rememberLocked(e)
		}
		close(e.done)
	}()
	defer e.cancel(nil)
	e.informer.RunWithContext(ctx)
}

// release removes a claim. Without claims, a running entry lingers, and one that was not started ends.
func (f *Factory) release(h *Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := h.entry
	e.addClaim(h, -1)
	if e.handles > 0 || f.isShutDown() || f.mu.entries[e.key] != e {
		return
	}
	if e.state() != entryLingering || f.options.Linger < 0 {
		f.dropLocked(e)
		return
	}
	var timer *time.Timer
	// Ended by Shutdown at the latest.
	timer = time.AfterFunc(f.options.Linger, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if e.lingerTimer == timer && !f.isShutDown() { // not claimed since
			f.dropLocked(e)
		}
	})
	e.lingerTimer = timer
}

// dropLocked removes an entry and stops its informer. It does not wait.
func (f *Factory) dropLocked(e *entry) {
	delete(f.mu.entries, e.key)
	if _, runs := f.mu.runningEntries[e]; !runs {
		f.rememberLocked(e)
	}
	e.stopLinger()
	if e.ctx == nil {
		e.informer.stopUnstarted(errReleased)
		return
	}
	e.cancel(errReleased)
}

func (e *entry) stopLinger() {
	if e.lingerTimer != nil {
		e.lingerTimer.Stop()
		e.lingerTimer = nil
	}
}

// entries returns the entries of the types, or all without types, ordered by group, resource, version and
// options. The informers of CRDs that the factory follows are hidden.
func (f *Factory) entries(types ...schema.GroupVersionResource) []*entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	var entries []*entry
	for key, e := range f.mu.entries {
		if !key.isDefinition() && (len(types) == 0 || slices.Contains(types, key.gvr)) {
			entries = append(entries, e)
		}
	}
	return sortedEntries(entries)
}

func sortedEntries(entries []*entry) []*entry {
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(naming.CompareTypes(a.key.gvr, b.key.gvr), cmp.Compare(a.options, b.options))
	})
	return entries
}
