package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Handle is a claim to an informer, which runs for as long as there are any. It is safe for concurrent use.
type Handle struct {
	factory *Factory
	entry   *entry
	once    sync.Once
	// required and renews are as in the claim that it counts as.
	required, renews bool

	own struct {
		sync.Mutex
		// indexes are the names of those that go with the handle.
		indexes  []string
		released bool
	}
}

// Acquire returns a handle to the informer of a type, seen as options say: what is set in the last of them
// counts before what is set in the ones before, and that before Options.Resources and Options.Defaults. All
// who ask for the same view of a type share one informer, and one watch.
//
// The informer runs from now on if Start has been called, or else from then on: with the context of Start,
// never that of the caller. It is stopped, without any deletions being delivered, when the last handle has
// been released for as long as Options.Linger, or at once if it was never started; then who waits for it is
// told, and the next Acquire makes another one. It does so, too, when the context of Start has ended. An
// informer that ForResource has returned is held until Shutdown.
//
// A type that does not exist can be acquired: its informer is pending. Acquire fails for options that
// contradict themselves, for a GVR without version or resource, for Indexes some of whose names are taken and
// others not, and with ErrShutdown after Shutdown. Reading the informer never starts anything.
func (f *Factory) Acquire(gvr schema.GroupVersionResource, options ...ResourceOptions) (*Handle, error) {
	return f.acquire(gvr, options, false)
}

// acquire is Acquire; renews says that another informer is asked for when this one has stopped.
func (f *Factory) acquire(gvr schema.GroupVersionResource, options []ResourceOptions,
	renews bool) (*Handle, error) {
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
	return f.claim(claim{key: entryKeyOf(gvr, resolved), options: resolved, start: true, renews: renews})
}

// addMissing adds the indexes that an informer does not have yet, which is the case when another asked for it
// first. Several who miss the same wait for the one who adds it.
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
	if options.Indexes == nil || !slices.ContainsFunc(options.Indexes.Names(),
		func(name string) bool { return !hasIndex(there, name) }) {
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
// event handler, after Shutdown, or when somebody else has acquired the type again meanwhile, whose informer
// is not touched. It does not wait.
func (h *Handle) Release() {
	h.once.Do(func() {
		h.own.Lock()
		h.own.released = true
		h.own.Unlock()
		// Before the claim is given up: an informer that lingers is the next holder's.
		h.Informer().RemoveIndexes(h.disown(func(string) bool { return true })...)
		h.factory.release(h)
	})
}

// AddIndexes adds indexes as [Informer.AddIndexes] does, for the holder of the handle alone: when the
// informer outlasts Release, because others keep it or it lingers, it loses them. Names should tell whose
// they are, since informers are shared. It fails after Release.
func (h *Handle) AddIndexes(indexes IndexSet, replaced ...string) error {
	disowned := h.disown(func(name string) bool { return slices.Contains(replaced, name) })
	err := h.Informer().AddIndexes(indexes, replaced...)
	if err == nil {
		disowned = indexes.Names()
	}
	if !h.owns(disowned) {
		h.Informer().RemoveIndexes(disowned...)
		err = errors.Join(err, errHandleReleased)
	}
	return err
}

// errHandleReleased is for what would go with a handle that is no claim any more.
var errHandleReleased = errors.New("dynamicinformer: the handle has been released")

// owns has indexes go with the handle, unless that has been released.
func (h *Handle) owns(names []string) bool {
	h.own.Lock()
	defer h.own.Unlock()
	if h.own.released {
		return false
	}
	h.own.indexes = append(h.own.indexes, names...)
	return true
}

// RemoveIndexes removes indexes that AddIndexes of this handle has added, and no others: a name that is free
// may be that of another holder's index by now. After Release it does nothing.
func (h *Handle) RemoveIndexes(names ...string) {
	h.Informer().RemoveIndexes(h.disown(func(name string) bool { return slices.Contains(names, name) })...)
}

// disown takes some indexes from those that go with the handle, before their names become free.
func (h *Handle) disown(which func(name string) bool) (names []string) {
	h.own.Lock()
	defer h.own.Unlock()
	h.own.indexes = slices.DeleteFunc(h.own.indexes, func(name string) bool {
		if which(name) {
			names = append(names, name)
			return true
		}
		return false
	})
	return names
}
