package dynamicinformer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// entryKey tells entries apart.
type entryKey struct {
	gvr  schema.GroupVersionResource
	view viewKey
}

func entryKeyOf(gvr schema.GroupVersionResource, options ResourceOptions) entryKey {
	return entryKey{gvr: gvr, view: options.view()}
}

// entry is an informer and what the factory did with it.
type entry struct {
	key      entryKey
	view     string // as in Status.View
	informer *Informer
	done     chan struct{} // closed when a started informer has ended

	// The rest is guarded by Factory.mu.

	started bool
	ctx     context.Context // of a started one
	cancel  context.CancelFunc
	// held says that ForResource has returned the informer; handles counts those of Acquire.
	held    bool
	handles int
	// wanted counts the times that somebody asked for it, so that what lingers since an earlier time is not
	// stopped; linger is the timer that stops it.
	wanted int
	linger *time.Timer
}

// ended reports whether the informer was started and has ended, or is about to, or was run without the factory and has
// ended. Factory.mu is held.
func (e *entry) ended() bool { return e.informer.IsStopped() || e.started && e.ctx.Err() != nil }

// addLocked makes an entry.
func (f *Factory) addLocked(gvr schema.GroupVersionResource, options ResourceOptions) (*entry, error) {
	i, err := newInformer(f.source, gvr, options, f.types)
	if err != nil {
		return nil, err
	}
	f.hub.join(i.health, options.required())
	e := &entry{key: entryKeyOf(gvr, options), view: options.describe(), informer: i, done: make(chan struct{})}
	f.mu.entries[e.key] = e
	return e, nil
}

// startLocked runs an informer, once, with the context of the latest Start.
func (f *Factory) startLocked(e *entry) { f.startInLocked(f.mu.running, e) }

func (f *Factory) startInLocked(ctx context.Context, e *entry) {
	if e.started {
		return
	}
	e.started = true
	e.ctx, e.cancel = context.WithCancel(ctx)
	go f.run(e.ctx, e) // ended by the context of Start, by Shutdown, or by the last Release
}

// namespaces returns a claim to an informer of all namespaces that runs, also for an informer that was run without
// Start. It fails after Shutdown.
func (f *Factory) namespaces() (*Handle, error) {
	h, err := f.claim(namespacesGVR, ResourceOptions{Namespaces: AllNamespaces(), Storage: Storage{Mode: StorageMetadata}})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.running == nil {
		f.startInLocked(f.ctx, h.entry)
	}
	return h, nil
}

// run runs one informer until ctx or the factory ends.
func (f *Factory) run(ctx context.Context, e *entry) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.mu.leaving, e)
		close(e.done) // under the lock, or it might join those who leave after it has left
	}()
	defer e.cancel()
	defer context.AfterFunc(f.ctx, e.cancel)()
	e.informer.RunWithContext(ctx)
}

// dropLocked takes an entry out of the factory and stops its informer, without waiting for it.
func (f *Factory) dropLocked(e *entry) {
	delete(f.mu.entries, e.key)
	if !e.started {
		e.informer.abandon()
		return
	}
	select {
	case <-e.done:
	default:
		f.mu.leaving[e] = struct{}{}
		e.cancel()
	}
}

// entries returns all entries, ordered by group, resource, version and view.
func (f *Factory) entries() []*entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*entry, 0, len(f.mu.entries))
	for _, e := range f.mu.entries {
		all = append(all, e)
	}
	return sortedEntries(all)
}

// entriesOf returns the entries of a type, ordered by view.
func (f *Factory) entriesOf(gvr schema.GroupVersionResource) []*entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*entry
	for key, e := range f.mu.entries {
		if key.gvr == gvr {
			all = append(all, e)
		}
	}
	return sortedEntries(all)
}

func sortedEntries(all []*entry) []*entry {
	slices.SortFunc(all, func(a, b *entry) int {
		if c := compareGVR(a.key.gvr, b.key.gvr); c != 0 {
			return c
		}
		return cmp.Compare(a.view, b.view)
	})
	return all
}
