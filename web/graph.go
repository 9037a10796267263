package web

import (
	"context"
	"slices"
	"sync"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// referenceGraph has the references between objects. It is built on first use, because it needs memory.
type referenceGraph struct {
	mu struct {
		sync.Mutex
		graph          *references.Graph
		withoutBinding bool // the graph does not belong to a binding
		closed         bool
		registrations  map[*dynamicinformer.Informer]registration
	}
}

// registration is a member of the graph with its references.
type registration struct {
	*references.Registration
	references []*indexers.Reference
}

// syncedGraph returns the graph with all current informers, after waiting until they have synced or ctx ends.
func (g *referenceGraph) syncedGraph(ctx context.Context, source Source) (*references.Graph, error) {
	found, err := g.update(source)
	if err != nil {
		return nil, err
	}
	return found, found.WaitForSync(ctx)
}

func (g *referenceGraph) update(source Source) (*references.Graph, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return nil, references.ErrClosed
	}
	if g.mu.graph == nil {
		g.mu.registrations = map[*dynamicinformer.Informer]registration{}
		if source.Binding == nil {
			g.mu.graph, g.mu.withoutBinding = references.New(), true
		} else {
			found, err := source.Binding.References()
			if err != nil {
				return nil, err
			}
			g.mu.graph = found
		}
	}
	current := map[*dynamicinformer.Informer]bool{}
	for _, typ := range source.visibleTypes() {
		if typ.target != nil {
			continue // the graph of a binding has its targets already
		}
		current[typ.informer] = true
		kind := source.kind(typ)
		old, exists := g.mu.registrations[typ.informer]
		if exists && slices.Equal(old.references, typ.References) || kind.Kind == "" {
			continue // references need a kind, which is unknown while a type is empty
		}
		if exists {
			old.Stop()
			delete(g.mu.registrations, typ.informer)
		}
		// An informer with selected objects is partial: references to its other objects must not count as
		// dangling.
		partial := typ.informer.Status().Options != ""
		member, err := g.mu.graph.Add(references.InformerSource{Type: kind, References: typ.References,
			Informer: typ.informer, HasSelector: partial})
		if err != nil {
			continue // the informer has stopped
		}
		g.mu.registrations[typ.informer] = registration{member, typ.References}
	}
	for informer, member := range g.mu.registrations {
		if !current[informer] {
			member.Stop()
			delete(g.mu.registrations, informer)
		}
	}
	return g.mu.graph, nil
}

func (g *referenceGraph) typeGraph(ctx context.Context, source Source,
	typ *visibleType) (*references.TypeGraph, error) {
	found, err := g.syncedGraph(ctx, source)
	if err != nil {
		return nil, err
	}
	return found.ForType(source.kind(typ)), nil
}

// stop removes all members, and closes the graph unless it belongs to a binding.
func (g *referenceGraph) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed = true
	for _, member := range g.mu.registrations {
		member.Stop()
	}
	if g.mu.withoutBinding {
		g.mu.graph.Close()
	}
	g.mu.graph = nil
}
