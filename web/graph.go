package web

import (
	"context"
	"slices"
	"sync"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// graph has the references between objects. It is built on first use, because it needs memory.
type graph struct {
	mu struct {
		sync.Mutex
		graph         *references.Graph
		isOwn         bool // the graph does not belong to a binding
		closed        bool
		registrations map[*dynamicinformer.Informer]registration
	}
}

// registration is a member of the graph with its references.
type registration struct {
	*references.Registration
	references []*indexers.Reference
}

// syncedGraph returns the graph with all current informers, after waiting until they have synced or ctx ends.
func (g *graph) syncedGraph(ctx context.Context, source Source) (*references.Graph, error) {
	found, err := g.update(source)
	if err != nil {
		return nil, err
	}
	return found, found.WaitForSync(ctx)
}

func (g *graph) update(source Source) (*references.Graph, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return nil, references.ErrClosed
	}
	if g.mu.graph == nil {
		g.mu.registrations = map[*dynamicinformer.Informer]registration{}
		if source.Binding == nil {
			g.mu.graph, g.mu.isOwn = references.New(), true
		} else {
			found, err := source.Binding.References()
			if err != nil {
				return nil, err
			}
			g.mu.graph = found
		}
	}
	now := map[*dynamicinformer.Informer]bool{}
	for _, k := range source.visibleTypes() {
		if k.target != nil {
			continue // the graph of a binding has its targets already
		}
		now[k.informer] = true
		kind := source.kind(k)
		old, exists := g.mu.registrations[k.informer]
		if exists && slices.Equal(old.references, k.References) || kind.Kind == "" {
			continue // references need a kind, which is unknown while a type is empty
		}
		if exists {
			old.Stop()
			delete(g.mu.registrations, k.informer)
		}
		// An informer with selected objects is partial: references to its other objects must not count as
		// dangling.
		partial := k.informer.Status().Options != ""
		member, err := g.mu.graph.Add(references.InformerSource{Type: kind, References: k.References,
			Informer: k.informer, HasSelector: partial})
		if err != nil {
			continue // the informer has stopped
		}
		g.mu.registrations[k.informer] = registration{member, k.References}
	}
	for informer, member := range g.mu.registrations {
		if !now[informer] {
			member.Stop()
			delete(g.mu.registrations, informer)
		}
	}
	return g.mu.graph, nil
}

func (g *graph) typeGraph(ctx context.Context, source Source, k *visibleType) (*references.TypeGraph, error) {
	found, err := g.syncedGraph(ctx, source)
	if err != nil {
		return nil, err
	}
	return found.ForType(source.kind(k)), nil
}

// stop removes all members, and closes the graph unless it belongs to a binding.
func (g *graph) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed = true
	for _, member := range g.mu.registrations {
		member.Stop()
	}
	if g.mu.isOwn {
		g.mu.graph.Close()
	}
	g.mu.graph = nil
}
