package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
)

// Handle is a claim to an informer, which runs while it has one. It is safe for concurrent use.
type Handle struct {
	factory *Factory
	entry   *entry
	once    sync.Once
	// required is ResourceOptions.Required; reacquires is as in acquireRequest.
	required, reacquires bool

	mu struct {
		sync.Mutex
		// indexes are the names of the indexes that Release removes.
		indexes  []string
		released bool
	}
}

// Acquire returns a handle to the informer of a type with the given options. Later options take precedence
// over earlier ones, and all of them over Options.Resources and Options.Defaults. Calls with equal options
// share one informer and one watch.
//
// If Start has been called, the informer starts immediately, otherwise at the next Start. It runs with the
// context of Start, not the caller's. After the release of the last handle it stops when Options.Linger has
// passed, or immediately if it never started. Stopping delivers no deletions and ends every wait for the
// informer. The next Acquire then makes a new informer, also after the context of Start has ended. An
// informer that ForResource returned is held until Shutdown.
//
// A type that does not exist can be acquired: its informer is Pending. Acquire returns an error for
// contradictory options, for a GVR without version or resource, and if only some of Indexes already exist.
// After Shutdown it returns ErrShutdown. Reads from the informer never start it.
func (f *Factory) Acquire(gvr schema.GroupVersionResource, options ...ResourceOptions) (*Handle, error) {
	return f.acquire(gvr, options, false)
}

// acquire implements Acquire. reacquires is as in acquireRequest.
func (f *Factory) acquire(gvr schema.GroupVersionResource, options []ResourceOptions,
	reacquires bool) (*Handle, error) {
	errs := slices.Concat(naming.Map(options, ResourceOptions.validate)...)
	resolved := f.resource(gvr, options...)
	if err := f.options.checkType(gvr, resolved); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dynamicinformer: acquiring %s: %w", formatGVR(gvr), err)
	}
	return f.findOrMake(acquireRequest{key: entryKeyOf(gvr, resolved), options: resolved, start: true,
		reacquires: reacquires})
}

// addMissingIndexes adds the indexes that an existing informer lacks. Concurrent calls wait for each other.
func (i *Informer) addMissingIndexes(options ResourceOptions) error {
	i.addIndexesToken <- struct{}{}
	defer func() { <-i.addIndexesToken }()
	missing := maps.Clone(options.Indexers)
	existing := i.GetIndexer().GetIndexers()
	for name := range existing {
		delete(missing, name)
	}
	if len(missing) > 0 {
		if err := i.AddIndexers(missing); err != nil {
			return err
		}
	}
	if options.Indexes == nil {
		return nil
	}
	for _, name := range options.Indexes.Names() {
		if _, exists := existing[name]; !exists {
			return i.AddIndexes(options.Indexes)
		}
	}
	return nil
}

// Informer returns the informer. It may stop at any time after Release.
func (h *Handle) Informer() *Informer { return h.entry.informer }

// Release gives up the claim. It does not wait, further calls do nothing, and it can be called from event
// handlers and after Shutdown. It does not affect an informer that was acquired later.
func (h *Handle) Release() {
	h.once.Do(func() {
		h.mu.Lock()
		h.mu.released = true
		h.mu.Unlock()
		// Before the release, because a lingering informer belongs to the next holder.
		h.Informer().RemoveIndexes(h.dropOwned(func(string) bool { return true })...)
		h.factory.release(h)
	})
}

// AddIndexes adds indexes as [Informer.AddIndexes] does, and Release removes them again if the informer
// continues. Informers are shared, so index names should identify their owner. It fails after Release.
func (h *Handle) AddIndexes(indexes IndexSet, replaced ...string) error {
	owned := h.dropOwned(func(name string) bool { return slices.Contains(replaced, name) })
	err := h.Informer().AddIndexes(indexes, replaced...)
	if err == nil {
		owned = indexes.Names()
	}
	if !h.recordOwned(owned) {
		h.Informer().RemoveIndexes(owned...)
		err = errors.Join(err, errors.New("dynamicinformer: the handle has been released"))
	}
	return err
}

// recordOwned records indexes for Release to remove. It returns false after Release.
func (h *Handle) recordOwned(names []string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.released {
		return false
	}
	h.mu.indexes = append(h.mu.indexes, names...)
	return true
}

// RemoveIndexes removes indexes that AddIndexes of this handle added. It ignores other names, because a name
// that is free again may belong to another holder. After Release it does nothing.
func (h *Handle) RemoveIndexes(names ...string) {
	h.Informer().RemoveIndexes(h.dropOwned(func(name string) bool { return slices.Contains(names, name) })...)
}

// dropOwned removes indexes from the handle's list. Call it before their names become free.
func (h *Handle) dropOwned(matches func(name string) bool) (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.indexes = slices.DeleteFunc(h.mu.indexes, func(name string) bool {
		if matches(name) {
			names = append(names, name)
			return true
		}
		return false
	})
	return names
}
