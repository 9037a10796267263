package bind

import (
	"fmt"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// membership is a target that the graph of references follows.
type membership struct {
	*references.Membership
	target *Target
	typ    references.Type
}

// References returns the graph of the references between the objects of all targets: those that the config
// declares, and those to owners. It follows the binding from the first call on: targets that come and go, and
// configs that are applied. A type that no target follows is unknown to it, so that references to it do not
// dangle: to check what refers to it, give it a resource of its own, which needs no index. Unchecked of the
// graph names such types, with the reason, and queries for what dangles warn of them. Close of the binding
// closes the graph.
func (b *Binding) References() (*references.Graph, error) {
	b.work.Lock()
	defer b.work.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	if b.graph == nil {
		graph := references.New()
		graph.Explain(b.unfollowed)
		b.mu.Lock()
		b.graph = graph
		b.mu.Unlock()
		b.members = map[place]membership{}
		b.followReferences()
	}
	return b.graph, nil
}

// unfollowed says why no target follows a type.
func (b *Binding) unfollowed(t references.Type) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.kinds {
		if k.Group == t.Group && (t.Kind != "" && k.kind == t.Kind || t.Kind == "" &&
			k.Resource == t.Resource) {
			return "no resource of the config means " + k.GroupResource.String()
		}
	}
	return "discovery knows no such type; install its CRD, or correct the reference"
}

// view is what the graph says about a target; nil where nobody has asked for the graph.
func (b *Binding) view(t *Target) *references.View {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.graph == nil {
		return nil
	}
	return b.graph.View(references.Type{Group: t.GVR.Group, Resource: t.GVR.Resource})
}

// followReferences makes the targets that serve the members of the graph. Callers hold work.
func (b *Binding) followReferences() {
	if b.graph == nil {
		return
	}
	slots := b.cloneSlots()
	for at, s := range slots {
		next := membership{target: s.serving, typ: b.kinds[at.GroupResource].referenceType()}
		old, known := b.members[at]
		if known && old.same(next) {
			continue
		}
		r := next.target.Resource
		var err error
		next.Membership, err = b.graph.Add(references.Member{
			Type: next.typ, References: r.References, Informer: next.target.Informer,
			Namespaces: r.Namespaces.Matches, Selected: r.Selectors != (indexers.Selectors{}),
		})
		if err != nil {
			b.report(fmt.Errorf("bind: resource %q: %w", r.Name, err))
			continue
		}
		b.members[at] = next
		if known {
			go old.replaced(next) // ended by the sync of the next one, or its end
		}
	}
	for at, m := range b.members {
		if _, there := slots[at]; !there {
			m.Stop()
			delete(b.members, at)
		}
	}
}

// same reports whether the graph need not be told of a membership.
func (m membership) same(next membership) bool {
	return m.target.handle == next.target.handle && m.typ == next.typ &&
		(m.target.Resource == next.target.Resource ||
			!difference(m.target.Resource, next.target.Resource).References)
}

// replaced ends a membership when another has taken its place, so that nothing dangles between.
func (m membership) replaced(by membership) {
	select {
	case <-by.Synced():
	case <-by.Stopped():
	}
	m.Stop()
}

func (k kind) referenceType() references.Type {
	return references.Type{Group: k.Group, Resource: k.Resource, Kind: k.kind, Namespaced: k.namespaced}
}
