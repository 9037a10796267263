package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Handle is a claim to an informer, which runs for as long as there are any. It is safe for concurrent use.
type Handle struct {
	factory *Factory
	entry   *entry
	once    sync.Once
}

// Acquire returns a handle to the informer of a type, seen as options say: what is set in the last of them
// counts before what is set in the ones before, and that before Options.Resources and Options.Defaults. All who
// ask for the same view of a type share one informer, and one watch.
//
// The informer runs from now on if Start has been called, or else from then on: with the context of Start, never
// that of the caller. It is stopped, without any deletions being delivered, when the last handle has been released
// for as long as Options.Linger; then who waits for it is told, and the next Acquire makes another one. An informer
// that ForResource has returned is held until Shutdown.
//
// A type that does not exist can be acquired: its informer is pending. Acquire fails for options that contradict
// themselves, for a GVR without version or resource, for Indexes some of whose names are taken and others not, and
// with ErrShutdown after Shutdown. Reading the informer never starts anything.
func (f *Factory) Acquire(gvr schema.GroupVersionResource, options ...ResourceOptions) (*Handle, error) {
	var errs []error
	for _, o := range options {
		errs = append(errs, o.validate()...)
	}
	resolved := f.options.resource(gvr, options...)
	if err := f.options.checkType(gvr, resolved); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dynamicinformer: acquiring %s: %w", formatGVR(gvr), err)
	}
	h, err := f.claim(gvr, resolved)
	if err != nil {
		return nil, err
	}
	if err := h.Informer().addMissing(resolved); err != nil {
		h.Release()
		return nil, fmt.Errorf("dynamicinformer: acquiring %s: %w", formatGVR(gvr), err)
	}
	return h, nil
}

// claim finds or makes the entry, and counts the handle.
func (f *Factory) claim(gvr schema.GroupVersionResource, options ResourceOptions) (*Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.shutdown {
		return nil, ErrShutdown
	}
	e, ok := f.mu.entries[entryKeyOf(gvr, options)]
	if ok && e.ended() {
		f.dropLocked(e)
		ok = false
	}
	if !ok {
		var err error
		if e, err = f.addLocked(gvr, options); err != nil {
			return nil, err
		}
	}
	e.handles++
	e.wanted++
	if f.mu.running != nil && f.mu.running.Err() == nil {
		f.startLocked(e)
	}
	return &Handle{factory: f, entry: e}, nil
}

// addMissing adds the indexes that an informer does not have yet, which is the case when another asked for it first.
// Several who miss the same wait for the one who adds it.
func (i *Informer) addMissing(options ResourceOptions) error {
	i.adding <- struct{}{}
	defer func() { <-i.adding }()
	missing := maps.Clone(options.Indexers)
	there := i.GetIndexer().GetIndexers()
	for name := range there {
		delete(missing, name)
	}
	if len(missing) > 0 {
		if err := i.AddIndexers(missing); err != nil {
			return err
		}
	}
	if options.Indexes == nil || !slices.ContainsFunc(options.Indexes.Names(), func(name string) bool { return !hasIndex(there, name) }) {
		return nil
	}
	return i.AddIndexes(options.Indexes)
}

func hasIndex(indexers cache.Indexers, name string) bool {
	_, ok := indexers[name]
	return ok
}

// Informer returns the informer. After Release it may be stopped at any time.
func (h *Handle) Informer() *Informer { return h.entry.informer }

// Release gives up the claim. Calling it again does nothing, and it may be called at any time: from inside an
// event handler, after Shutdown, or when somebody else has acquired the type again meanwhile, whose informer is
// not touched. It does not wait.
func (h *Handle) Release() { h.once.Do(func() { h.factory.release(h.entry) }) }

func (f *Factory) release(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.handles--
	if e.handles > 0 || e.held || f.mu.shutdown || f.mu.entries[e.key] != e {
		return
	}
	if f.options.Linger < 0 {
		f.dropLocked(e)
		return
	}
	wanted := e.wanted
	// Ended by Shutdown at the latest.
	e.linger = time.AfterFunc(f.options.Linger, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if e.wanted == wanted && !f.mu.shutdown && f.mu.entries[e.key] == e {
			f.dropLocked(e)
		}
	})
}
