package references

import (
	"context"
	"slices"
)

// To returns the references to an object, sorted. It leaves out references to another object of that name:
// with a UID other than that of o, or, if o has none, than that of the objects in the graph. See
// [Graph.ToOthers].
func (g *Graph) To(o Object) []Reference { return g.to(o, false) }

// ToOthers returns the references that [Graph.To] leaves out, sorted. Their object was deleted and created
// again, or was copied from elsewhere.
func (g *Graph) ToOthers(o Object) []Reference { return g.to(o, true) }

func (g *Graph) to(o Object, others bool) []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Reference
	for _, n := range g.at(o) {
		for e := n.in; e != nil; e = e.next {
			if e.meansOther(o.UID) == others {
				all = append(all, e.reference())
			}
		}
	}
	return sorted(all)
}

// From returns the references that an object makes, sorted.
func (g *Graph) From(o Object) []Reference { return g.from(o, func(*edge) bool { return true }) }

// from is From for some of the references.
func (g *Graph) from(o Object, fits func(*edge) bool) []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Reference
	for _, n := range g.at(o) {
		for _, e := range n.out {
			if fits(e) {
				all = append(all, e.reference())
			}
		}
	}
	return sorted(all)
}

// Dangling gives all references that lead to nothing, sorted. It costs as much as there are.
func (g *Graph) Dangling() []Reference {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.allDangling()
}

func (g *Graph) allDangling() []Reference {
	all := make([]Reference, 0, len(g.mu.dangling))
	for e := range g.mu.dangling {
		all = append(all, e.reference())
	}
	return sorted(all)
}

func sorted(all []Reference) []Reference {
	slices.SortFunc(all, Reference.compare)
	return all
}

// at returns the nodes of an object: of a type that nobody follows, it may have one by each name of the type.
func (g *Graph) at(o Object) (nodes []*node) {
	for _, k := range g.mu.find(o) {
		if n := k.nodes[k.at(o.Namespace, o.Name)]; n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// UnknownTypes gives the types that are referred to and that no member has followed, sorted: of each the
// group and either the plural name or the kind, as the references have it.
func (g *Graph) UnknownTypes() []Type {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Type
	for _, byName := range []map[typeName]*kind{g.mu.byKind, g.mu.byResource} {
		for _, k := range byName {
			if !k.known && len(k.nodes) > 0 {
				all = append(all, k.Type)
			}
		}
	}
	slices.SortFunc(all, func(a, b Type) int {
		return Object{Group: a.Group, Resource: a.Resource, Kind: a.Kind}.compare(Object{Group: b.Group,
			Resource: b.Resource, Kind: b.Kind})
	})
	return all
}

// Stats counts what a graph holds.
type Stats struct {
	// Members are the informers, and Synced those that have synced.
	Members, Synced int
	// References are those of all objects, and Dangling those that lead to nothing.
	References, Dangling int
}

// Stats counts what the graph holds now.
func (g *Graph) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{Members: len(g.mu.members), References: g.mu.edges, Dangling: len(g.mu.dangling)}
	for m := range g.mu.members {
		if m.synced {
			s.Synced++
		}
	}
	return s
}

// WaitForSync waits until all members have synced, those included that are added meanwhile. The error is that
// of ctx, or ErrClosed.
func (g *Graph) WaitForSync(ctx context.Context) error {
	for {
		g.mu.Lock()
		done, closed, changed := true, g.mu.closed, g.mu.changed
		for m := range g.mu.members {
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
