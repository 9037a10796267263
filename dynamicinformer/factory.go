package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrShutdown is returned for what a factory is asked after Shutdown.
var ErrShutdown = errors.New("dynamicinformer: the factory has been shut down")

// Factory makes and runs informers, one for each type. It is safe for concurrent use.
type Factory struct {
	source  source
	options Options
	types   *typeBoard // nil without Options.Types
	hub     *hub
	// subscriptions are those that have not been closed.
	subscriptions subscriptions

	// ctx ends with Shutdown, by cancel.
	ctx    context.Context
	cancel context.CancelFunc

	mu struct {
		sync.Mutex
		entries map[entryKey]*entry
		// leaving are those that have been released and have not ended yet.
		leaving map[*entry]struct{}
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
		client:       client,
		limiter:      newLimiter(options.ListConcurrency, time.Now),
		onWatchError: options.OnWatchError,
		logger:       options.Logger,
	}}
	f.source.namespaces = f.namespaces
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.mu.entries, f.mu.leaving = map[entryKey]*entry{}, map[*entry]struct{}{}
	f.hub = newHub(options.Types == nil, time.Now)
	if _, err := f.hub.add(options.Listener); err != nil {
		return nil, err
	}
	if options.Types != nil {
		f.types = newTypeBoard(options.Types, f.hub.learntTypes)
	}
	return f, nil
}

// ForResource returns the informer of gvr, the same one for every call. It is made on the first call, runs from
// the next Start on, and is held until Shutdown; see Acquire for those that can be released. Whether the server
// knows the type is not looked at here; the status tells. It fails for a GVR without version or resource, and
// with ErrShutdown after Shutdown.
func (f *Factory) ForResource(gvr schema.GroupVersionResource) (*Informer, error) {
	options := f.options.resource(gvr)
	if err := f.options.checkType(gvr, options); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.shutdown {
		return nil, ErrShutdown
	}
	e, ok := f.mu.entries[entryKeyOf(gvr, options)]
	if !ok {
		var err error
		if e, err = f.addLocked(gvr, options); err != nil {
			return nil, err
		}
	}
	e.held = true
	e.wanted++
	return e.informer, nil
}

// Start runs every informer that has been asked for and does not run yet. Those run until ctx ends, Shutdown is
// called, or they have been released. Calling it again starts what is new. It does not block.
func (f *Factory) Start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.shutdown {
		return ErrShutdown
	}
	f.mu.running = ctx
	for _, e := range f.mu.entries {
		f.startLocked(e)
	}
	return nil
}

// Status returns the status of every informer, ordered by group, resource, version and view.
func (f *Factory) Status() []Status {
	all := make([]Status, 0)
	for _, e := range f.entries() {
		all = append(all, e.informer.Status())
	}
	return all
}

// sortedGVRs returns the keys of a map, ordered by group, resource and version.
func sortedGVRs[V any](m map[schema.GroupVersionResource]V) []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(m), compareGVR)
}

func compareGVR(a, b schema.GroupVersionResource) int {
	if c := strings.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	if c := strings.Compare(a.Resource, b.Resource); c != 0 {
		return c
	}
	return strings.Compare(a.Version, b.Version)
}
