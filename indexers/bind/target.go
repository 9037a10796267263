package bind

import (
	"cmp"
	"context"
	"fmt"
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

	view      *View
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
	view, err := NewView(context.Background(), indexers.BuildLimits{}, handle, r.Name+"/", r.CacheIndexes(),
		r.Indexes)
	if err != nil {
		handle.Release()
		return nil, fmt.Errorf("bind: resource %q: %w", r.Name, err)
	}
	return &Target{Resource: r, GVR: gvr, Informer: handle.Informer(), view: view, createdAt: time.Now(),
		released: make(chan struct{})}, nil
}

func (t *Target) release() {
	close(t.released)
	t.view.Release()
}

// reindexed returns a copy of the target with the indexes of a changed resource; see View.Reindexed.
func (t *Target) reindexed(resource *indexers.Resource) (changed *Target, undo, dropRemoved func(),
	err error) {
	next := *t
	next.Resource = resource
	next.view, undo, dropRemoved, err = t.view.Reindexed(context.Background(), indexers.BuildLimits{},
		resource.CacheIndexes(), resource.Indexes)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("bind: resource %q: %w", resource.Name, err)
	}
	return &next, undo, dropRemoved, nil
}

// Querier returns a querier over the target.
func (t *Target) Querier() *query.Querier { return query.New(t.Source(), t.Resource.Indexes...) }

// Stats returns the statistics of each index in the order of the config.
func (t *Target) Stats() []indexers.Stats {
	out := make([]indexers.Stats, 0, len(t.Resource.Indexes))
	for _, index := range t.Resource.Indexes {
		inInformer := t.view.indexes[index.Name]
		for _, s := range inInformer.functions.Stats() {
			if s.Index == inInformer.name {
				s.Index = index.Name
				out = append(out, s)
			}
		}
	}
	return out
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
	var pending []*Target
	for _, s := range b.mu.slots {
		if s.replacement != nil {
			pending = append(pending, s.replacement)
		}
	}
	b.mu.Unlock()
	out := make([]Pending, len(pending))
	for i, t := range pending {
		out[i] = Pending{t.Resource, t.GVR, t.createdAt, t.Informer.Status()}
	}
	slices.SortFunc(out, func(x, y Pending) int {
		return cmp.Or(strings.Compare(x.Resource.Name, y.Resource.Name),
			strings.Compare(x.GVR.Group, y.GVR.Group), strings.Compare(x.GVR.Resource, y.GVR.Resource))
	})
	return out
}
