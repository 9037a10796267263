package web

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/references"
)

// referenceGraph creates the graph of references on first use, because the graph needs memory.
type referenceGraph struct {
	mu struct {
		sync.Mutex
		graph         *references.Graph
		ownsGraph     bool // the graph does not belong to a binding
		closed        bool
		registrations map[*dynamicinformer.Informer]*references.Registration
	}
}

// syncedGraph adds all current informers to the graph. It returns the graph after they have synced or ctx has
// ended.
func (g *referenceGraph) syncedGraph(ctx context.Context, source Source) (*references.Graph, error) {
	graph, err := g.update(source)
	if err != nil {
		return nil, err
	}
	return graph, graph.WaitForSync(ctx)
}

func (g *referenceGraph) update(source Source) (*references.Graph, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return nil, references.ErrClosed
	}
	if g.mu.graph == nil {
		g.mu.registrations = map[*dynamicinformer.Informer]*references.Registration{}
		if source.Binding == nil {
			g.mu.graph, g.mu.ownsGraph = references.New(), true
		} else {
			graph, err := source.Binding.References()
			if err != nil {
				return nil, err
			}
			g.mu.graph = graph
		}
	}
	current := map[*dynamicinformer.Informer]bool{}
	for _, typ := range source.visibleTypes() {
		if typ.target != nil {
			continue // the graph of a binding has its targets already
		}
		current[typ.informer] = true
		kind := source.kind(typ)
		if g.mu.registrations[typ.informer] != nil || kind.Kind == "" {
			continue // references need a kind, which is unknown while a type is empty
		}
		// References to objects that the informer does not select must not count as dangling.
		hasSelector := typ.informer.Status().Options != ""
		member, err := g.mu.graph.Add(references.InformerSource{Type: kind, Informer: typ.informer,
			HasSelector: hasSelector})
		if err != nil {
			continue // the informer has stopped
		}
		g.mu.registrations[typ.informer] = member
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
	graph, err := g.syncedGraph(ctx, source)
	if err != nil {
		return nil, err
	}
	return graph.ForType(source.kind(typ)), nil
}

// stop removes all registrations. It closes the graph unless the graph belongs to a binding.
func (g *referenceGraph) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed = true
	for _, member := range g.mu.registrations {
		member.Stop()
	}
	if g.mu.ownsGraph {
		g.mu.graph.Close()
	}
	g.mu.graph = nil
}
