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
			_, _, ok := p.touches(index)
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
		first := read.steps
		if len(first) == 0 || first[0].Recursive || !above(metadata, first) ||
			first[0].Selectors[0].Kind != jsonpath.SelectName {
			d.fail(CodeContradict, read.place(d.file),
				"the index reads more than metadata, and storage mode metadata keeps no more",
				"use another storage mode, or an index over metadata")
			return
		}
	}
}

// keptByIndex warns of something that an index reads and that would be cut out otherwise.
func (d *decoding) keptByIndex(r *Resource, index *Index) {
	if !index.Complete() {
		return
	}
	if removed, by, ok := r.Prune.touches(index); ok {
		d.fail(CodeKeptForIndex, by.place(d.file), fmt.Sprintf("the index reads %s, which is to be pruned",
			removed), "it stays in the objects, or the index could not be computed; drop one of the two")
	}
}

// touches gives the first path that is cut out and that an index may need, and what needs it.
func (p Prune) touches(index *Index) (*jsonpath.Path, reading, bool) {
	all := index.reads()
	for _, removed := range p.Paths() {
		for _, read := range all {
			if above(removed.Steps(), read.steps) {
				return removed, read, true
			}
		}
	}
	return nil, reading{}, false
}

// reading is a path that an index follows, from the object on.
type reading struct {
	steps []jsonpath.Step
	// at is the expression that it is in. operand are the bytes of it in a condition; both are 0 for a whole
	// path.
	at      Origin
	operand [2]int
}

// place is where the path is written.
func (r reading) place(f *File) Place {
	if r.operand[1] > 0 {
		return r.at.Place(f, len(r.steps), r.operand[0], r.operand[1])
	}
	return f.PlaceOf(r.at.Node)
}

// readings are collected for one expression.
type readings struct {
	at  Origin
	all []reading
}

// reads gives all paths that an index follows.
func (i *Index) reads() []reading {
	var out []reading
	if i.When != nil {
		r := readings{at: i.WhenAt}
		for _, operand := range i.When.Operands() {
			r.add(nil, operand, true)
		}
		out = r.all
	}
	var base []jsonpath.Step
	if i.Each != nil {
		base = i.Each.Steps()
		r := readings{at: i.EachAt}
		r.add(nil, base, false)
		out = append(out, r.all...)
	}
	for n := range i.Parts {
		for _, s := range i.Parts[n].Sources {
			r, from := readings{at: s.At}, base
			if s.At.Node == nil { // nobody wrote it
				r.at = i.Origin()
			}
			if s.Root {
				from = nil
			}
			r.add(from, s.Path.Steps(), false)
			out = append(out, r.all...)
		}
	}
	return out
}

// add adds a path below base, and those in its filters.
func (r *readings) add(base, steps []jsonpath.Step, operand bool) {
	one := reading{steps: joinSteps(base, steps), at: r.at}
	if n := len(steps); operand && n > 0 {
		one.operand = [2]int{steps[0].Offset, steps[n-1].End}
	}
	r.all = append(r.all, one)
	for i, step := range steps {
		for _, s := range step.Selectors {
			if s.Kind != jsonpath.SelectFilter {
				continue
			}
			element := joinSteps(base, steps[:i+1])
			for _, inner := range s.Filter.Operands() {
				r.add(element, inner, operand)
			}
		}
	}
}

func joinSteps(a, b []jsonpath.Step) []jsonpath.Step {
	return append(a[:len(a):len(a)], b...)
}

// above reports whether something that removed leads to may be at or above what read leads to. What is
// removed below does not matter: whether a map is there, which is all that is asked of one, does not depend
// on it.
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
