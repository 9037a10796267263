package bind

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
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
	indexes, err := addIndexes(handle, r.Name, r.CacheIndexes())
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

// informerIndex is an index in an informer.
type informerIndex struct {
	// name is the name in the informer.
	name string
	// functions compute the index and count.
	functions *indexers.Functions
}

// addIndexes adds the indexes of a resource to an informer under unused names. They begin with the name of
// the resource, because resources of one type share an informer.
func addIndexes(handle *dynamicinformer.Handle, resource string,
	indexes []*indexers.Index) (map[string]informerIndex, error) {
	out := map[string]informerIndex{}
	if len(indexes) == 0 {
		return out, nil
	}
	for n := 1; ; n++ {
		renamed, names := make([]*indexers.Index, len(indexes)), make([]string, len(indexes))
		for i, index := range indexes {
			names[i] = resource + "/" + index.Name
			if n > 1 {
				names[i] += fmt.Sprintf("~%d", n)
			}
			renamed[i] = index.Renamed(names[i])
		}
		if hasIndexNamed(handle.Informer(), names) {
			continue
		}
		functions := indexers.CompileIndexes(renamed...)
		err := handle.AddIndexes(functions)
		if err != nil && hasIndexNamed(handle.Informer(), names) { // a concurrent caller took a name
			continue
		}
		for i, index := range indexes {
			out[index.Name] = informerIndex{names[i], functions}
		}
		return out, err
	}
}

func hasIndexNamed(informer *dynamicinformer.Informer, names []string) bool {
	exists := informer.GetIndexer().GetIndexers()
	return slices.ContainsFunc(names, func(name string) bool { return exists[name] != nil })
}

// Pending is a change of a resource that waits for the sync of a new informer. The previous target answers
// until then, forever if the server never allows the new one.
type Pending struct {
	// Resource is the new version of the resource.
	Resource *indexers.Resource
	// GVR is the type of the new informer.
	GVR schema.GroupVersionResource
	// Since is the time at which the informer was acquired.
	Since time.Time
	// Status is the status of the informer.
	Status status.Status
}

// String describes the change and its status in one line.
func (p Pending) String() string {
	return fmt.Sprintf("resource %q: the config applied at %s waits for its informer; the previous one answers: %s",
		p.Resource.Name, p.Since.Format(time.RFC3339), p.Status)
}

// Pending returns the waiting changes, ordered by resource and type. It is empty if all targets have the
// current config.
func (b *Binding) Pending() []Pending {
	b.mu.Lock()
	var waiting []*Target
	for _, s := range b.mu.slots {
		if s.replacement != nil {
			waiting = append(waiting, s.replacement)
		}
	}
	b.mu.Unlock()
	out := make([]Pending, len(waiting))
	for i, t := range waiting {
		out[i] = Pending{t.Resource, t.GVR, t.createdAt, t.Informer.Status()}
	}
	slices.SortFunc(out, func(x, y Pending) int {
		return cmp.Or(strings.Compare(x.Resource.Name, y.Resource.Name),
			strings.Compare(x.GVR.Group, y.GVR.Group), strings.Compare(x.GVR.Resource, y.GVR.Resource))
	})
	return out
}
