package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/store"
)

var (
	// ErrShutdown is returned for what a factory is asked after Shutdown.
	ErrShutdown = health.ErrShutdown
	// ErrStopped is returned for what an informer can't do any more, or can't be waited for, because it has
	// stopped for good.
	ErrStopped = informer.ErrStopped
)

// Factory makes and runs informers, one for each type. It is safe for concurrent use.
type Factory struct {
	source  source
	options Options
	// board has what Options.Types tells, until stopTypes; both are nil without it.
	board     *follow.Board
	stopTypes func()
	hub       *health.Hub
	// subscriptions are those that have not been closed.
	subscriptions subscriptions

	// ctx ends with Shutdown, by cancel.
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu struct {
		sync.Mutex
		entries map[entryKey]*entry
		// alive are those that have been started and have not ended yet, also when they are no longer among
		// entries.
		alive map[*entry]struct{}
		// past is what informers have counted that are in neither any more.
		past map[described]status.Counters
		// running is the context of the latest Start; nil before the first.
		running  context.Context
		shutdown bool
	}
}

// New returns a Factory, or an error that says what is wrong with the options.
func New(options Options) (*Factory, error) {
	client, err := options.client()
	if err = errors.Join(err, options.validate()); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	options = options.withDefaults()
	f := &Factory{options: options, source: source{
		Server: &requests.Server{
			Client:    client,
			Limiter:   requests.NewLimiter(options.ListConcurrency, time.Now),
			Restores:  requests.NewRestores(),
			OnFailure: options.OnWatchError,
		},
		onWatchError: options.OnWatchError,
		logger:       options.Logger,
		sweeper:      store.NewSweeper(options.MemoryBudget),
	}}
	f.source.namespaces = f.namespaces
	f.source.keeping = newKeeping(options, client)
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	f.mu.entries, f.mu.alive, f.mu.past = map[entryKey]*entry{}, map[*entry]struct{}{},
		map[described]status.Counters{}
	f.hub = health.NewHub(options.Types == nil, time.Now)
	f.hub.Expect(options.requiredTypes()...)
	if _, err := f.AddListener(options.Listener); err != nil {
		return nil, err
	}
	if options.Types != nil {
		f.board = follow.NewBoard(f.hub.LearntTypes)
		f.stopTypes = sync.OnceFunc(options.Types.Subscribe(typeBoard{f.board}))
	}
	return f, nil
}

// ForResource returns the informer of gvr, the same one for every call and for Acquire without options of its
// own. It is made on the first call, runs from the next Start on, and is held until Shutdown; see Acquire for
// those that can be released. One that has stopped, with the context of its Start, is replaced by another one
// that the next Start runs.
//
// Whether the server knows the type is not looked at here; the status tells. It fails for a GVR without
// version or resource, for Indexes some of whose names are taken and others not, and with ErrShutdown after
// Shutdown.
func (f *Factory) ForResource(gvr schema.GroupVersionResource) (*Informer, error) {
	options := f.options.resource(gvr)
	if err := f.options.checkType(gvr, options); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	// The claim is never released.
	h, err := f.claim(claim{key: entryKeyOf(gvr, options), options: options})
	if err != nil {
		return nil, err
	}
	return h.Informer(), nil
}

// Start runs every informer that has been asked for and does not run yet. Those run until ctx ends, Shutdown
// is called, or they have been released. Calling it again starts what is new. It does not block. If ctx has
// ended already, Start starts nothing and returns the cause.
//
// Informers that have stopped, because the context of an earlier Start has ended, do not run again. As long
// as somebody holds one (ForResource, or a Handle that has not been released), Start starts nothing and fails
// with an ErrStopped that names the types. ForResource and Acquire give another one, which Start runs then; a
// Subscription asks for another one by itself.
func (f *Factory) Start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.shutdown {
		return ErrShutdown
	}
	if ctx.Err() != nil {
		return fmt.Errorf("dynamicinformer: start: %w", context.Cause(ctx))
	}
	if ended := f.endedLocked(); len(ended) > 0 {
		return fmt.
			Errorf(
				"dynamicinformer: %s cannot be started again: %w, with the context of an earlier Start: ask for it again, release it, or make another factory",
				formatGVRs(ended), ErrStopped)
	}
	f.mu.running = ctx
	for _, e := range f.mu.entries {
		f.startLocked(e)
	}
	return nil
}

// endedLocked returns the types of the informers that have ended after an earlier Start, and that somebody
// holds who does not ask for another one.
func (f *Factory) endedLocked() []schema.GroupVersionResource {
	types := map[schema.GroupVersionResource]bool{}
	for key, e := range f.mu.entries {
		if e.ctx != nil && e.claims > e.renewing && e.state() == entryEnded {
			types[key.gvr] = true
		}
	}
	return sortedGVRs(types)
}

// Informers returns all informers that are held or linger, ordered by group, resource, version and view. One
// that the factory needs for itself, to learn the namespaces for example, is among them.
func (f *Factory) Informers() []*Informer {
	all := make([]*Informer, 0)
	for _, e := range f.entries() {
		all = append(all, e.informer)
	}
	return all
}

// Status returns the status of every informer, ordered by group, resource, version and view.
func (f *Factory) Status() []status.Status {
	all := make([]status.Status, 0)
	for _, i := range f.Informers() {
		all = append(all, i.Status())
	}
	return all
}

// sortedGVRs returns the keys of a map, ordered by group, resource and version.
func sortedGVRs[V any](m map[schema.GroupVersionResource]V) []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(m), health.CompareGVR)
}
