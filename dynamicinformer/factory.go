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

	// ctx ends with Shutdown, by cancel.
	ctx    context.Context
	cancel context.CancelFunc

	mu struct {
		sync.Mutex
		informers map[schema.GroupVersionResource]*entry
		shutdown  bool
	}
}

// entry is an informer and what the factory did with it.
type entry struct {
	informer *Informer
	started  bool
	done     chan struct{} // closed when a started informer has ended
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
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.mu.informers = map[schema.GroupVersionResource]*entry{}
	f.hub = newHub(options.Types == nil, time.Now)
	if _, err := f.hub.add(options.Listener); err != nil {
		return nil, err
	}
	if options.Types != nil {
		f.types = newTypeBoard(options.Types, f.hub.learntTypes)
	}
	return f, nil
}

// ForResource returns the informer of gvr, the same one for every call. It is made on the first call and
// runs from the next Start on. Whether the server knows the type is not looked at here; the status tells.
// It fails for a GVR without version or resource, and with ErrShutdown after Shutdown.
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
	if e, ok := f.mu.informers[gvr]; ok {
		return e.informer, nil
	}
	i, err := newInformer(f.source, gvr, options, f.types)
	if err != nil {
		return nil, err
	}
	f.hub.join(i.health, options.required())
	f.mu.informers[gvr] = &entry{informer: i, done: make(chan struct{})}
	return i, nil
}

// Start runs every informer that has been asked for and does not run yet. Those run until ctx ends or
// Shutdown is called. Calling it again starts what is new. It does not block.
func (f *Factory) Start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.shutdown {
		return ErrShutdown
	}
	for _, e := range f.mu.informers {
		if e.started {
			continue
		}
		e.started = true
		go f.run(ctx, e) // ended by ctx or by Shutdown
	}
	return nil
}

// run runs one informer until ctx or the factory ends.
func (f *Factory) run(ctx context.Context, e *entry) {
	defer close(e.done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	e.informer.RunWithContext(ctx)
}

// Status returns the status of every informer, ordered by group, resource and version.
func (f *Factory) Status() []Status {
	all := make([]Status, 0)
	for _, e := range f.entries() {
		all = append(all, e.informer.Status())
	}
	return all
}

// Shutdown stops every informer and waits until all have ended or ctx has. In the latter case the error
// is a *ShutdownError. The factory can't be used again. Calling it again waits again. It must not be
// called from an event handler or a listener, whose return it would wait for.
func (f *Factory) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	f.mu.shutdown = true
	f.mu.Unlock()
	f.cancel()
	if f.types != nil {
		f.types.stop()
	}

	var running []schema.GroupVersionResource
	for _, e := range f.entries() {
		if !e.started {
			e.informer.abandon()
			continue
		}
		select {
		case <-e.done:
			continue
		default:
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			running = append(running, e.informer.gvr)
		}
	}
	told := f.hub.shut(ctx)
	if len(running) > 0 || told != nil {
		return &ShutdownError{Running: running, Cause: context.Cause(ctx)}
	}
	return nil
}

// entries returns copies of all entries, ordered by group, resource and version.
func (f *Factory) entries() []entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]entry, 0, len(f.mu.informers))
	for _, e := range f.mu.informers {
		all = append(all, *e)
	}
	slices.SortFunc(all, func(a, b entry) int { return compareGVR(a.informer.gvr, b.informer.gvr) })
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

// ShutdownError reports what had not ended when the context given to Shutdown did.
type ShutdownError struct {
	// Running are the types whose informers have not ended: a handler has not returned, usually. It is empty
	// when it is a listener that has not.
	Running []schema.GroupVersionResource
	// Cause is the context's.
	Cause error
}

// Error names what still runs.
func (e *ShutdownError) Error() string {
	running := formatGVRs(e.Running)
	if running == "" {
		running = "a listener"
	}
	return fmt.Sprintf("dynamicinformer: shutdown: still running: %s: %v", running, e.Cause)
}

// Unwrap returns the context's cause.
func (e *ShutdownError) Unwrap() error { return e.Cause }
