package config

import (
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// presetPaths are the paths that presets remove.
var presetPaths = map[string]*jsonpath.Path{
	"managedFields": jsonpath.FromSegments("metadata", "managedFields"),
	"lastApplied": jsonpath.FromSegments("metadata", "annotations",
		"kubectl.kubernetes.io/last-applied-configuration"),
}

// Paths returns all removed paths, including presets.
func (p Prune) Paths() []*jsonpath.Path {
	paths := slices.Clone(p.Remove)
	for _, preset := range p.Presets {
		paths = append(paths, presetPaths[preset])
	}
	return paths
}

// Without returns the prune without the paths that an index reads.
func (p Prune) Without(indexes []*Index) Prune {
	isRead := func(p Prune) bool {
		return slices.ContainsFunc(indexes, func(index *Index) bool {
			_, _, ok := p.firstConflict(index)
			return ok
		})
	}
	return Prune{
		Presets: slices.DeleteFunc(slices.Clone(p.Presets), func(preset string) bool {
			return isRead(Prune{Presets: []string{preset}})
		}),
		Remove: slices.DeleteFunc(slices.Clone(p.Remove), func(path *jsonpath.Path) bool {
			return isRead(Prune{Remove: []*jsonpath.Path{path}})
		}),
	}
}

// checkMetadataOnly reports an index that reads more than metadata if only metadata is stored.
func (d *decoder) checkMetadataOnly(r *Resource, index *Index) {
	if r.Storage.Mode != "metadata" || !index.Complete() {
		return
	}
	metadata := jsonpath.FromSegments("metadata").Steps()
	for _, read := range index.readPaths() {
		first := read.Steps
		if len(first) == 0 || first[0].Recursive || !selectsAtOrAbove(metadata, first) ||
			first[0].Selectors[0].Kind != jsonpath.SelectName {
			d.fail(CodeContradict, read.position(d.file),
				"the index reads fields that storage mode metadata does not store",
				"use another storage mode, or an index over metadata")
			return
		}
	}
}

// warnIndexedPruned warns about pruned fields that an index reads, and that are therefore stored.
func (d *decoder) warnIndexedPruned(r *Resource, index *Index) {
	if !index.Complete() {
		return
	}
	if removed, by, ok := r.Prune.firstConflict(index); ok {
		d.fail(CodePrunedFieldIndexed, by.position(d.file), fmt.Sprintf("the index reads %s, which prune removes",
			removed), "it is stored nevertheless; remove the index, or the path from prune")
	}
}

// firstConflict returns the first removed path that an index may read, and the expression that reads it.
func (p Prune) firstConflict(index *Index) (*jsonpath.Path, readPath, bool) {
	paths := index.readPaths()
	for _, removed := range p.Paths() {
		for _, read := range paths {
			if selectsAtOrAbove(removed.Steps(), read.Steps) {
				return removed, read, true
			}
		}
	}
	return nil, readPath{}, false
}

// readPath is a path that an index reads, relative to the object.
type readPath struct {
	jsonpath.Read
	// origin is its expression. operand is set for a path in a condition.
	origin  Origin
	operand bool
	// each is set for the path of elements that other paths begin at.
	each bool
}

func (r readPath) position(f *File) Position {
	if r.operand && r.End > 0 {
		return r.origin.Position(f, len(r.Steps), r.Offset, r.End)
	}
	return f.PositionOf(r.origin.Node)
}

func (i *Index) readPaths() []readPath {
	var out []readPath
	if i.When != nil {
		for _, read := range i.When.Reads() {
			out = append(out, readPath{Read: read, origin: i.WhenOrigin, operand: true})
		}
	}
	var base []jsonpath.Step
	if i.Each != nil {
		base = i.Each.Steps()
		for n, read := range i.Each.Reads() {
			out = append(out, readPath{Read: read, origin: i.EachOrigin, each: n == 0})
		}
	}
	for n := range i.Parts {
		for _, s := range i.Parts[n].Sources {
			origin := s.Origin
			if origin.Node == nil { // implied by the config
				origin = i.Origin()
			}
			for _, read := range s.Path.Reads() {
				if !s.Root {
					read.Steps = slices.Concat(base, read.Steps)
				}
				out = append(out, readPath{Read: read, origin: origin})
			}
		}
	}
	return out
}

// Fields returns the fields that a complete index reads; see [jsonpath.Read.Fields].
func (i *Index) Fields() (fields []string) {
	for _, read := range i.readPaths() {
		fields = append(fields, read.Fields()...)
	}
	return fields
}

// selectsAtOrAbove reports whether removed may select a value at or above a value of read. Values below do
// not matter: an index only tests the existence of maps.
func selectsAtOrAbove(removed, read []jsonpath.Step) bool {
	for i := range removed {
		if i == len(read) {
			return false
		}
		if read[i].Recursive {
			return true
		}
		if !selectorsOverlap(removed[i].Selectors, read[i].Selectors) {
			return false
		}
	}
	return true
}

// selectorsOverlap reports whether two lists of selectors may select the same value.
func selectorsOverlap(a, b []jsonpath.Selector) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Kind != jsonpath.SelectName || y.Kind != jsonpath.SelectName || x.Name == y.Name {
				return true
			}
		}
	}
	return false
}
