package bind

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Target is a type that a resource of a config matches, with its informer.
type Target struct {
	// Name is the name of the resource in the config; "" with Settings.Selection.
	Name string
	// Resource is the resource in the config, with the schema of the type. With Settings.Selection, it
	// combines all that match the type. It lacks the indexes whose schema is unknown, see Binding.Problems.
	Resource *indexers.Resource
	// Type is the type of the informer, and GVR its name.
	Type discovery.Resource
	GVR  schema.GroupVersionResource
	// Informer may be shared, and may stop at any time after the resource was removed or the binding closed.
	// In the informer an index is named RESOURCE/INDEX; Source has it as INDEX.
	Informer *dynamicinformer.Informer

	binding   *Binding
	settings  *Settings
	view      *View
	createdAt time.Time
	boundResource
}

// acquire returns the desired target of a slot, which can share an informer with the current ones.
func (b *Binding) acquire(ctx context.Context, p *plan, key slotKey, bound boundResource) (t *Target,
	err error) {
	d, limits, resource := p.desired[key], p.settings.BuildLimits, bound.resource
	options, err := b.options.ResourceOptions(bound.declared)
	if err != nil {
		return nil, err
	}
	handle, err := b.factory.Acquire(d.typ.GVR, options)
	if err != nil {
		return nil, err
	}
	t = &Target{Name: key.resource, Resource: resource, Type: d.typ, GVR: d.typ.GVR,
		Informer: handle.Informer(), binding: b, settings: p.settings, createdAt: time.Now(),
		boundResource: bound}
	if err := b.options.Accept(t); err != nil {
		handle.Release()
		return nil, err
	}
	indexes := resource.CacheIndexes()
	for _, current := range p.slots[key].targets() {
		if current.Informer != t.Informer {
			continue
		}
		handle.Release() // the view has one
		view, undo, dropRemoved, err := current.view.Reindexed(ctx, limits, indexes, resource.Indexes)
		if err != nil {
			return nil, err
		}
		t.view = view
		p.onAbandon, p.onCommit = append(p.onAbandon, undo), append(p.onCommit, dropRemoved)
		return t, nil
	}
	prefix := ""
	if key.resource != "" {
		prefix = key.resource + "/"
	}
	t.view, err = NewView(ctx, limits, handle, prefix, indexes, resource.Indexes)
	if err != nil && !p.isAtomic && ctx.Err() == nil {
		err = t.addFitting(ctx, limits, handle, prefix)
	}
	if err != nil {
		handle.Release()
		return nil, err
	}
	p.onAbandon = append(p.onAbandon, t.view.Release)
	return t, nil
}

// addFitting adds the indexes within the limits, as if they had been in place before the first list.
func (t *Target) addFitting(ctx context.Context, limits indexers.BuildLimits, handle *dynamicinformer.Handle,
	prefix string) (err error) {
	t.view, err = NewView(ctx, limits, handle, prefix, nil, nil)
	var fitting, declared []*indexers.Index
	for i, index := range t.Resource.CacheIndexes() {
		all, queried := append(slices.Clip(fitting), index), declared
		if i < len(t.Resource.Indexes) {
			queried = append(slices.Clip(declared), index)
		}
		if next, _, _, refusal := t.view.Reindexed(ctx, limits, all, queried); refusal != nil {
			t.refusals = append(t.refusals,
				fmt.Errorf("cached without the index %q: %w", index.Name, refusal))
		} else {
			t.view, fitting, declared = next, all, queried
		}
	}
	return err
}

// Source returns the content of the informer for [query.New], with the indexes of the resource under their
// names in the config. It switches to the replacement of the target, and is immutable when there is none.
func (t *Target) Source() query.Source { return t }

// Snapshot implements query.Source. A target can lose its indexes after its replacement took over, so that a
// snapshot is complete only if its target still serves after the snapshot was taken.
func (t *Target) Snapshot() query.Snapshot {
	for current := t.successor(); ; {
		snapshot := current.view.Snapshot()
		latest := t.successor()
		if latest == current {
			return snapshot
		}
		current = latest
	}
}

// successor returns the current target of the slot, or this one if there is none.
func (t *Target) successor() *Target {
	return cmp.Or(t.binding.slots()[slotKey{t.Name, t.GVR.GroupResource()}].serving, t)
}

// View returns the informer with the indexes.
func (t *Target) View() *View { return t.view }

// Indexes returns the indexes for queries: the indexes of Resource that exceeded no limit.
func (t *Target) Indexes() []*indexers.Index { return t.view.queryIndexes }

// Querier returns a querier over the target.
func (t *Target) Querier() *query.Querier { return query.New(t, t.Resource.Indexes...) }

// Stats returns the statistics of each of Indexes.
func (t *Target) Stats() []indexers.Stats {
	out := make([]indexers.Stats, 0, len(t.view.queryIndexes))
	for _, index := range t.view.queryIndexes {
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
	// Informer is the new informer, and Status its status.
	Informer *dynamicinformer.Informer
	Status   status.Status
}

// String describes the change and its status in one line.
func (p Pending) String() string {
	return fmt.Sprintf("resource %q: the config applied at %s waits for its informer; the previous one answers: %s",
		p.Resource.Name, p.Since.Format(time.RFC3339), p.Status)
}

// Pending returns the waiting changes, ordered by resource and type. It is empty if all targets have the
// current config.
func (b *Binding) Pending() []Pending {
	slots := b.slots()
	var out []Pending
	for _, key := range sortedKeys(slots) {
		if t := slots[key].replacement; t != nil {
			out = append(out, Pending{t.Resource, t.GVR, t.createdAt, t.Informer, t.Informer.Status()})
		}
	}
	return out
}
