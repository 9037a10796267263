package bind

import (
	"fmt"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// graphSource is a target that is registered as a source of the reference graph.
type graphSource struct {
	*references.Registration
	target *Target
	typ    references.Type
}

// References returns the graph of the references between the objects of all targets: references declared in
// the config, and owner references. After the first call, the binding updates the graph whenever its targets
// or its config change. References to a type without a target are not checked, and do not count as dangling.
// To have them checked, declare a resource for the type in the config; the resource needs no index.
// Graph.Unchecked returns such types with the reason, and queries warn about them. Close closes the graph.
func (b *Binding) References() (*references.Graph, error) {
	if err := b.lock(b.ctx); err != nil {
		return nil, err
	}
	defer b.unlock()
	if b.graph == nil {
		graph := references.New()
		graph.Explain(b.reasonWithoutTarget)
		b.mu.Lock()
		b.graph = graph
		b.mu.Unlock()
		b.graphTargets = map[slotKey]graphSource{}
		b.syncGraphSources()
	}
	return b.graph, nil
}

func (b *Binding) reasonWithoutTarget(t references.Type) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for gr, versions := range b.types {
		if gr.Group == t.Group && len(versions) > 0 && (t.Kind != "" && versions[0].GVK.Kind == t.Kind ||
			t.Kind == "" && gr.Resource == t.Resource) {
			return "no resource of the config matches " + gr.String()
		}
	}
	return "discovery knows no such type; install its CRD, or correct the reference"
}

// typeGraph returns the graph as seen from a target; nil before the first call of References.
func (b *Binding) typeGraph(t *Target) *references.TypeGraph {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.graph == nil {
		return nil
	}
	return b.graph.ForType(references.Type{Group: t.GVR.Group, Resource: t.GVR.Resource})
}

// syncGraphSources makes the serving targets the sources of the graph: it adds and removes sources to match
// the slots. Callers hold changing.
func (b *Binding) syncGraphSources() {
	if b.graph == nil {
		return
	}
	slots := b.slots()
	for key, slot := range slots {
		t := slot.serving
		next := graphSource{target: t, typ: references.Type{Group: t.GVR.Group, Resource: t.GVR.Resource,
			Kind: t.Type.GVK.Kind, Namespaced: t.Type.Scope == discovery.Namespaced}}
		old, exists := b.graphTargets[key]
		if exists && old.canKeep(next) {
			continue
		}
		r := next.target.Resource
		var err error
		next.Registration, err = b.graph.Add(references.InformerSource{
			Type: next.typ, References: r.References, Informer: next.target.Informer,
			Namespaces: r.Namespaces.Matches, HasSelector: r.Selectors != (indexers.Selectors{}),
		})
		if err != nil {
			b.options.OnProblem(slot.serving.Type.String(), fmt.Errorf("references: %w", err))
			continue
		}
		b.graphTargets[key] = next
		if exists {
			go old.stopAfterSync(next) // ends with the sync or the end of next
		}
	}
	for key, source := range b.graphTargets {
		if _, exists := slots[key]; !exists {
			source.Stop()
			delete(b.graphTargets, key)
		}
	}
}

func (g graphSource) canKeep(next graphSource) bool {
	return g.target.view.handle == next.target.view.handle && g.typ == next.typ &&
		(g.target.Resource == next.target.Resource ||
			!indexers.DiffResources(g.target.Resource, next.target.Resource).References)
}

// stopAfterSync removes a source from the graph after its replacement has synced, so that no reference
// dangles in between.
func (g graphSource) stopAfterSync(replacement graphSource) {
	select {
	case <-replacement.Synced():
	case <-replacement.Stopped():
	}
	g.Stop()
}
