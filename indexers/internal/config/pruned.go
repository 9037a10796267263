package config

import (
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// lastApplied is the annotation that kubectl apply leaves.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Paths gives all that is cut out, the presets and annotations written out as paths.
func (p Prune) Paths() []*jsonpath.Path {
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

// Without gives what remains to be cut out when nothing that one of the indexes reads is.
func (p Prune) Without(indexes []*Index) Prune {
	var out Prune
	read := func(p Prune) bool {
		return slices.ContainsFunc(indexes, func(index *Index) bool {
			_, ok := p.touches(index)
			return ok
		})
	}
	for _, preset := range p.Presets {
		if !read(Prune{Presets: []string{preset}}) {
			out.Presets = append(out.Presets, preset)
		}
	}
	for _, path := range p.Remove {
		if !read(Prune{Remove: []*jsonpath.Path{path}}) {
			out.Remove = append(out.Remove, path)
		}
	}
	for _, name := range p.RemoveAnnotations {
		if !read(Prune{RemoveAnnotations: []string{name}}) {
			out.RemoveAnnotations = append(out.RemoveAnnotations, name)
		}
	}
	return out
}

// metadataOnly reports an index that reads more than the metadata of objects of which no more is kept.
func (d *decoding) metadataOnly(r *Resource, index *Index) {
	if r.Storage.Mode != "metadata" || !index.Complete() {
		return
	}
	metadata := jsonpath.FromSegments("metadata").Steps()
	for _, read := range index.reads() {
		if len(read) == 0 || read[0].Recursive || !above(metadata, read) || read[0].Selectors[0].Kind != jsonpath.SelectName {
			d.failAt(CodeContradict, index.Origin().Node, "the index reads more than metadata, and storage mode metadata keeps no more", "use another storage mode, or an index over metadata")
			return
		}
	}
}

// keptByIndex warns of something that an index reads and that would be cut out otherwise.
func (d *decoding) keptByIndex(r *Resource, index *Index) {
	if !index.Complete() {
		return
	}
	if removed, ok := r.Prune.touches(index); ok {
		d.failAt(CodeKeptForIndex, index.Origin().Node, fmt.Sprintf("the index reads %s, which is to be pruned", removed), "it stays in the objects, or the index could not be computed; drop one of the two")
	}
}

// touches gives the first path that is cut out and that an index may need.
func (p Prune) touches(index *Index) (*jsonpath.Path, bool) {
	read := index.reads()
	for _, removed := range p.Paths() {
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
	if i.When != nil {
		for _, operand := range i.When.Operands() {
			read = withOperands(read, nil, operand)
		}
	}
	var base []jsonpath.Step
	if i.Each != nil {
		base = i.Each.Steps()
		read = withOperands(read, nil, base)
	}
	for n := range i.Parts {
		for _, s := range i.Parts[n].Sources {
			from := base
			if s.Root {
				from = nil
			}
			read = withOperands(read, from, s.Path.Steps())
		}
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
