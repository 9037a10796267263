package bind

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Target is a type that a resource of a config means, with the informer that follows it.
type Target struct {
	// Resource is what the config says.
	Resource *indexers.Resource
	// GVR is the type that was asked for.
	GVR schema.GroupVersionResource
	// Informer follows it. After the resource or the binding is gone it may be stopped at any time. It may be
	// shared: in it an index is called by the name of the resource, a slash and its own; Source knows it by
	// its own alone.
	Informer *dynamicinformer.Informer

	handle *dynamicinformer.Handle
	// indexes are those of the resource, by their names in the config.
	indexes map[string]bound
	// since is when the informer was asked for.
	since time.Time
	// dropped is closed when the target is given up.
	dropped chan struct{}
}

// acquire makes a target.
func (b *Binding) acquire(r *indexers.Resource, gvr schema.GroupVersionResource) (*Target, error) {
	options, err := b.options.ResourceOptions(r)
	if err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	handle, err := b.factory.Acquire(gvr, options)
	if err != nil {
		return nil, fmt.Errorf("bind: resource %q: %w", r.Name, err)
	}
	indexes, err := addIndexes(handle, r.Name, r.Indexes)
	if err != nil {
		handle.Release()
		return nil, fmt.Errorf("bind: resource %q: %w", r.Name, err)
	}
	return &Target{Resource: r, GVR: gvr, Informer: handle.Informer(), handle: handle, indexes: indexes,
		since: time.Now(), dropped: make(chan struct{})}, nil
}

// drop gives the target up.
func (t *Target) drop() {
	close(t.dropped)
	t.handle.Release()
}

// reindexed adds the indexes that a change asks for, and returns what the target is with them and without
// those that it removes. Those are there until clean removes them, and undo removes those that were added.
func (t *Target) reindexed(to *indexers.Resource, c indexers.Change) (now *Target, undo, clean func(),
	err error) {
	added, err := addIndexes(t.handle, to.Name, c.Added)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("bind: resource %q: %w", to.Name, err)
	}
	next := *t
	next.Resource, next.indexes = to, maps.Clone(t.indexes)
	var gone, come []string
	for _, index := range c.Removed {
		gone = append(gone, t.indexes[index.Name].name)
		delete(next.indexes, index.Name)
	}
	for name, index := range added {
		come = append(come, index.name)
		next.indexes[name] = index
	}
	remove := func(names []string) func() { return func() { t.handle.RemoveIndexes(names...) } }
	return &next, remove(come), remove(gone), nil
}

// Querier answers queries over the target.
func (t *Target) Querier() *query.Querier { return query.New(t.Source(), t.Resource.Indexes...) }

// Duplicates gives the values that more than one object has, the most frequent first, of each index that the
// config declares unique, by its name. Indexes without such values are left out.
func (t *Target) Duplicates(ctx context.Context) (map[string][]query.ValueCount, error) {
	querier := t.Querier()
	out := map[string][]query.ValueCount{}
	for _, index := range t.Resource.Indexes {
		if !index.Unique {
			continue
		}
		values, err := querier.Duplicates(ctx, index.Name)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			out[index.Name] = values
		}
	}
	return out, nil
}

// Stats say what each index met so far, in the order of the config.
func (t *Target) Stats() []indexers.Stats {
	out := make([]indexers.Stats, 0, len(t.Resource.Indexes))
	for _, index := range t.Resource.Indexes {
		for _, s := range t.indexes[index.Name].functions.Stats() {
			if s.Index == index.Name {
				out = append(out, s)
			}
		}
	}
	return out
}
