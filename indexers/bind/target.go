package bind

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Target is a type that a resource of a config matches, with its informer.
type Target struct {
	// Resource is the resource in the config.
	Resource *indexers.Resource
	// GVR is the type of the informer.
	GVR schema.GroupVersionResource
	// Informer may be shared, and may stop at any time after the resource was removed or the binding closed.
	// In the informer an index is named RESOURCE/INDEX; Source has it as INDEX.
	Informer *dynamicinformer.Informer

	handle *dynamicinformer.Handle
	// indexes are the resource's indexes by their names in the config.
	indexes   map[string]informerIndex
	createdAt time.Time
	// released is closed when the target is released.
	released chan struct{}
}

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
		createdAt: time.Now(), released: make(chan struct{})}, nil
}

func (t *Target) release() {
	close(t.released)
	t.handle.Release()
}

// reindexed adds the new indexes of a changed resource to the informer. It returns a copy of the target with
// the indexes of the resource. undo removes the new indexes from the informer, dropRemoved the old ones.
func (t *Target) reindexed(resource *indexers.Resource,
	c indexers.Change) (changed *Target, undo, dropRemoved func(), err error) {
	indexes, err := addIndexes(t.handle, resource.Name, c.Added)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("bind: resource %q: %w", resource.Name, err)
	}
	next := *t
	next.Resource, next.indexes = resource, maps.Clone(t.indexes)
	var removed, added []string
	for _, index := range c.Removed {
		removed = append(removed, t.indexes[index.Name].name)
		delete(next.indexes, index.Name)
	}
	for name, index := range indexes {
		added = append(added, index.name)
		next.indexes[name] = index
	}
	remove := func(names []string) func() { return func() { t.handle.RemoveIndexes(names...) } }
	return &next, remove(added), remove(removed), nil
}

// Querier returns a querier over the target.
func (t *Target) Querier() *query.Querier { return query.New(t.Source(), t.Resource.Indexes...) }

// Stats returns the statistics of each index in the order of the config.
func (t *Target) Stats() []indexers.Stats {
	out := make([]indexers.Stats, 0, len(t.Resource.Indexes))
	for _, index := range t.Resource.Indexes {
		for _, s := range t.indexes[index.Name].functions.Stats() {
			if s.Index == t.indexes[index.Name].name {
				s.Index = index.Name
				out = append(out, s)
			}
		}
	}
	return out
}
