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

// metadataOnly reports an index that reads more than the metadata of objects of which no more is kept.
func (d *decoding) metadataOnly(r *Resource, index *Index) {
	if r.Storage.Mode != "metadata" || !index.complete() {
		return
	}
	metadata := jsonpath.FromSegments("metadata").Steps()
	for _, read := range index.reads() {
		if len(read) == 0 || read[0].Recursive || !above(metadata, read) || read[0].Selectors[0].Kind != jsonpath.SelectName {
			d.failAt(CodeContradict, index.parts[0].at.node, "the index reads more than metadata, and storage mode metadata keeps no more", "use another storage mode, or an index over metadata")
			return
		}
	}
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
	read := index.reads()
	for _, removed := range p.paths() {
		for _, steps := range read {
			if above(removed.Steps(), steps) {
				return removed, true
			}
		}
	}
	return nil, false
}

// reads gives all paths that an index follows, from the object on.
func (i *Index) reads() (read [][]jsonpath.Step) {
	if i.when != nil {
		for _, operand := range i.when.Operands() {
			read = withOperands(read, nil, operand)
		}
	}
	var base []jsonpath.Step
	if i.each != nil {
		base = i.each.Steps()
		read = withOperands(read, nil, base)
	}
	for n := range i.parts {
		read = withOperands(read, base, i.parts[n].path.Steps())
	}
	return read
}

// withOperands adds a path below base, and those in its filters.
func withOperands(read [][]jsonpath.Step, base, steps []jsonpath.Step) [][]jsonpath.Step {
	read = append(read, joinSteps(base, steps))
	for i, step := range steps {
		for _, s := range step.Selectors {
			if s.Kind != jsonpath.SelectFilter {
				continue
			}
			element := joinSteps(base, steps[:i+1])
			for _, operand := range s.Filter.Operands() {
				read = withOperands(read, element, operand)
			}
		}
	}
	return read
}

func joinSteps(a, b []jsonpath.Step) []jsonpath.Step {
	return append(a[:len(a):len(a)], b...)
}

// above reports whether something that removed leads to may be at or above what read leads to. What is removed
// below does not matter: whether a map is there, which is all that is asked of one, does not depend on it.
func above(removed, read []jsonpath.Step) bool {
	for i := range removed {
		if i == len(read) {
			return false
		}
		if read[i].Recursive {
			return true
		}
		if !meet(removed[i].Selectors, read[i].Selectors) {
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
