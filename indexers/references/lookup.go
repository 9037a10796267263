package references

import (
	"context"
	"slices"
)

// To returns the references to an object, sorted. It leaves out references to another object of that name:
// with a UID other than that of o, or, if o has none, than the UIDs of the objects in the graph. See
// [Graph.ToOtherUIDs].
func (g *Graph) To(o Object) []Reference { return g.referencesTo(o, false) }

// ToOtherUIDs returns the references that [Graph.To] leaves out, sorted. Their target was deleted and
// recreated, or they were copied.
func (g *Graph) ToOtherUIDs(o Object) []Reference { return g.referencesTo(o, true) }

func (g *Graph) referencesTo(o Object, others bool) []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	var refs []Reference
	for _, n := range g.nodesOf(o) {
		for e := n.firstIncoming; e != nil; e = e.next {
			if e.refersToOtherUID(o.UID) == others {
				refs = append(refs, e.reference())
			}
		}
	}
	return sortReferences(refs)
}

// From returns the references of an object, sorted.
func (g *Graph) From(o Object) []Reference {
	return g.referencesFrom(o, func(*edge) bool { return true })
}

// referencesFrom is From with a filter.
func (g *Graph) referencesFrom(o Object, fits func(*edge) bool) []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	var refs []Reference
	for _, n := range g.nodesOf(o) {
		for _, e := range n.outgoing {
			if fits(e) {
				refs = append(refs, e.reference())
			}
		}
	}
	return sortReferences(refs)
}

// Dangling returns all dangling references, sorted. The cost is linear in their number.
func (g *Graph) Dangling() []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.allDangling()
}

func (g *Graph) allDangling() []Reference {
	refs := make([]Reference, 0, len(g.mu.dangling))
	for e := range g.mu.dangling {
		refs = append(refs, e.reference())
	}
	return sortReferences(refs)
}

func sortReferences(refs []Reference) []Reference {
	slices.SortFunc(refs, Reference.compare)
	return refs
}

// nodesOf returns the nodes of an object. If no source has its type, there may be one for each name of the
// type.
func (g *Graph) nodesOf(o Object) (nodes []*node) {
	for _, k := range g.mu.find(o) {
		if n := k.nodes[k.targetKey(o.Namespace, o.Name)]; n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// UnknownTypes returns the target types that never had a source, sorted: the group and either the plural name
// or the kind, as in the references.
func (g *Graph) UnknownTypes() []Type {
	g.mu.Lock()
	defer g.mu.Unlock()
	var types []Type
	for _, byName := range []map[typeName]*typeNode{g.mu.byKind, g.mu.byResource} {
		for _, k := range byName {
			if !k.known && len(k.nodes) > 0 {
				types = append(types, k.Type)
			}
		}
	}
	slices.SortFunc(types, func(a, b Type) int {
		return Object{Group: a.Group, Resource: a.Resource, Kind: a.Kind}.compare(Object{Group: b.Group,
			Resource: b.Resource, Kind: b.Kind})
	})
	return types
}

// Stats are the counts of a graph.
type Stats struct {
	// Informers is the number of informers, Synced the number that have synced.
	Informers, Synced int
	// References is the number of references of all objects, Dangling of the dangling ones.
	References, Dangling int
}

// Stats returns the current counts.
func (g *Graph) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{Informers: len(g.mu.sources), References: g.mu.edges, Dangling: len(g.mu.dangling)}
	for m := range g.mu.sources {
		if m.synced {
			s.Synced++
		}
	}
	return s
}

// WaitForSync waits until all sources have synced, including sources added during the wait. It returns the
// cause of ctx's end, or ErrClosed.
func (g *Graph) WaitForSync(ctx context.Context) error {
	for {
		g.mu.Lock()
		done, closed, changed := true, g.mu.closed, g.mu.changed
		for m := range g.mu.sources {
			done = done && m.synced
		}
		g.mu.Unlock()
		switch {
		case closed:
			return ErrClosed
		case done:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}
