package indexers

import (
	"fmt"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// lastApplied is the annotation that kubectl apply leaves.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// paths gives all that is cut out, the presets and annotations written out as paths.
func (p Prune) paths() []*jsonpath.Path {
	all := append([]*jsonpath.Path(nil), p.Remove...)
	annotations := p.RemoveAnnotations
	for _, preset := range p.Presets {
		switch preset {
		case "managedFields":
			all = append(all, jsonpath.FromSegments("metadata", "managedFields"))
		case "lastApplied":
			annotations = append(annotations[:len(annotations):len(annotations)], lastApplied)
		}
	}
	for _, a := range annotations {
		all = append(all, jsonpath.FromSegments("metadata", "annotations", a))
	}
	return all
}

// EffectivePrune gives what is cut out of objects that are kept: what Prune says, without what an index reads,
// since an index could not be computed of an object that lacks it.
func (r *Resource) EffectivePrune() Prune {
	var out Prune
	for _, preset := range r.Prune.Presets {
		if p := (Prune{Presets: []string{preset}}); !r.reads(p) {
			out.Presets = append(out.Presets, preset)
		}
	}
	for _, path := range r.Prune.Remove {
		if p := (Prune{Remove: []*jsonpath.Path{path}}); !r.reads(p) {
			out.Remove = append(out.Remove, path)
		}
	}
	for _, name := range r.Prune.RemoveAnnotations {
		if p := (Prune{RemoveAnnotations: []string{name}}); !r.reads(p) {
			out.RemoveAnnotations = append(out.RemoveAnnotations, name)
		}
	}
	return out
}

// reads reports whether some index may need what is cut out.
func (r *Resource) reads(p Prune) bool {
	for _, index := range r.Indexes {
		if _, ok := p.touches(index); ok {
			return true
		}
	}
	return false
}

// keptByIndex warns of something that an index reads and that would be cut out otherwise.
func (d *decoding) keptByIndex(r *Resource, index *Index) {
	if !index.complete() {
		return
	}
	if removed, ok := r.Prune.touches(index); ok {
		d.failAt(CodeKeptForIndex, index.parts[0].at.node, fmt.Sprintf("the index reads %s, which is to be pruned", removed), "it stays in the objects, or the index could not be computed; drop one of the two")
	}
}

// touches gives the first path that is cut out and that an index may need.
func (p Prune) touches(index *Index) (*jsonpath.Path, bool) {
	var read [][]jsonpath.Step
	if index.when != nil {
		read = append(read, index.when.Operands()...)
	}
	var base []jsonpath.Step
	if index.each != nil {
		base = index.each.Steps()
		read = append(read, operands(nil, base)...)
	}
	for n := range index.parts {
		steps := index.parts[n].path.Steps()
		read = append(read, joinSteps(base, steps))
		read = append(read, operands(base, steps)...)
	}
	for _, removed := range p.paths() {
		for _, steps := range read {
			if overlap(removed.Steps(), steps) {
				return removed, true
			}
		}
	}
	return nil, false
}

func joinSteps(a, b []jsonpath.Step) []jsonpath.Step {
	return append(a[:len(a):len(a)], b...)
}

// operands gives the paths in the filters of a path, from the object on.
func operands(base, steps []jsonpath.Step) (out [][]jsonpath.Step) {
	for i, step := range steps {
		for _, s := range step.Selectors {
			if s.Kind != jsonpath.SelectFilter {
				continue
			}
			at := joinSteps(base, steps[:i+1])
			for _, operand := range s.Filter.Operands() {
				out = append(out, joinSteps(at, operand))
			}
		}
	}
	return out
}

// overlap reports whether one path may lead to something at, above or below what the other leads to.
func overlap(a, b []jsonpath.Step) bool {
	for i := range min(len(a), len(b)) {
		if a[i].Recursive || b[i].Recursive {
			return true
		}
		if !meet(a[i].Selectors, b[i].Selectors) {
			return false
		}
	}
	return true
}

// meet reports whether two lists of selectors may select the same.
func meet(a, b []jsonpath.Selector) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Kind != jsonpath.SelectName || y.Kind != jsonpath.SelectName || x.Name == y.Name {
				return true
			}
		}
	}
	return false
}
