package indexers

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// prunedFields are the declared fields of a Prune.
type prunedFields struct {
	presets []string
	paths   []*jsonpath.Path
}

var presetPaths = map[string]*jsonpath.Path{
	"ManagedFields": jsonpath.FromSegments("metadata", "managedFields"),
	"LastApplied": jsonpath.FromSegments("metadata", "annotations",
		"kubectl.kubernetes.io/last-applied-configuration"),
}

func (p prunedFields) withoutRead(indexes []*Index) (out Prune) {
	isRead := func(path *jsonpath.Path) bool {
		return slices.ContainsFunc(indexes, func(index *Index) bool {
			_, ok := index.firstRead(path)
			return ok
		})
	}
	for _, preset := range p.presets {
		if !isRead(presetPaths[preset]) {
			out.Presets = append(out.Presets, preset)
		}
	}
	for _, path := range p.paths {
		if !isRead(path) {
			out.Remove = append(out.Remove, fieldText(path.Steps()))
		}
	}
	return out
}

// EffectivePrune returns Prune without the fields that an index reads: the index could not be computed from
// stored objects that lack them.
func (r *Resource) EffectivePrune() Prune { return r.pruned.withoutRead(r.allIndexes()) }

// EffectiveKeep returns Keep with the fields that indexes and references read.
func (r *Resource) EffectiveKeep() Keep {
	if r.Keep.Paths == nil {
		return Keep{}
	}
	paths := slices.Clone(r.Keep.Paths)
	for _, index := range r.allIndexes() {
		for _, read := range index.readPaths() {
			if field := storedField(read.Steps); field != "" && !read.each {
				paths = append(paths, field)
			}
		}
	}
	slices.Sort(paths)
	effective := r.Keep
	effective.Paths = slices.Compact(paths)
	return effective
}

// drops reports whether storage, prune or keep drops the field that a path of names leads to.
func (r *Resource) drops(field *jsonpath.Path) bool {
	steps := field.Steps()
	selects := func(text string) bool {
		path, err := jsonpath.Compile(text)
		return err == nil && selectsAtOrAbove(path.Steps(), steps)
	}
	return r.Storage.Mode == "Metadata" && !selectsOnlyName(steps[0], "metadata") ||
		r.Keep.Paths != nil && !slices.ContainsFunc(r.EffectiveKeep().Paths, selects) ||
		slices.ContainsFunc(r.EffectivePrune().Remove, selects)
}

// fieldText formats a path that consists of names and wildcards.
func fieldText(steps []jsonpath.Step) string { return jsonpath.Read{Steps: steps}.Fields()[0] }

// storedField returns the field that has to be stored for a path: its longest prefix of names, and of
// elements of lists, that ends in a name. It returns "" if the path can read any field.
func storedField(steps []jsonpath.Step) string {
	var prefix []jsonpath.Step
	end := 0
	for _, step := range steps {
		isName := func(s jsonpath.Selector) bool { return s.Kind == jsonpath.SelectName }
		switch {
		case selectsOnlyName(step, ""):
			end = len(prefix) + 1
		case step.Recursive || slices.ContainsFunc(step.Selectors, isName):
			return fieldText(prefix[:end])
		default:
			step.Selectors = []jsonpath.Selector{{Kind: jsonpath.SelectElements}}
		}
		prefix = append(prefix, step)
	}
	return fieldText(prefix[:end])
}

// checkStorage reports the fields that a complete index reads although the cache does not store them, or
// stores them only for the index.
func (d *decoder) checkStorage(r *Resource, index *Index) {
	d.warnIndexedPruned(r, index)
	if r.Keep.Paths != nil { // an index that may read any field is an error
		d.checkReadsFields(index, "index")
	}
	d.checkStorageMode(r, index)
}

// warnIndexedPruned warns about a pruned field that an index reads, and that is therefore stored.
func (d *decoder) warnIndexedPruned(r *Resource, index *Index) {
	removed := slices.Clone(r.pruned.paths)
	for _, preset := range r.pruned.presets {
		removed = append(removed, presetPaths[preset])
	}
	for _, path := range removed {
		if readBy, ok := index.firstRead(path); ok {
			d.fail(codePrunedFieldIndexed, readBy.position(d.file),
				fmt.Sprintf("the index reads %s, which prune removes", path),
				"it is stored nevertheless; remove the index, or the path from prune")
			return
		}
	}
}

// compileWholeObjects compiles the condition on objects that keep all fields.
func (d *decoder) compileWholeObjects(f *wholeForm, r *Resource) {
	r.wholeCondition = nil
	r.Keep.WholeLabels, _ = parseSelector(d, f.Labels, "labels", parseLabels)
	when, _, at := d.compileCondition(&conditionForm{When: f.When})
	if when == nil {
		return
	}
	r.Keep.WholeWhen, r.wholeCondition = when.Expr(), &Index{when: when, whenOrigin: at}
	d.checkReadsFields(r.wholeCondition, "condition")
}

// checkWholeObjects reports a condition on whole objects if the storage mode is metadata. Either of the two
// can come from the defaults.
func (d *decoder) checkWholeObjects(f *storedForm, r *Resource) {
	at := cmp.Or(f.Keep.Whole.node, f.Storage.Mode.node)
	if at != nil && r.Storage.Mode == "Metadata" && r.Keep.WholeLabels+r.Keep.WholeWhen != "" {
		d.failAt(codeContradict, at, "storage mode Metadata has no whole objects",
			"use another storage mode, or keep without whole")
	}
}

// checkReadsFields reports an index or condition that may read any field.
func (d *decoder) checkReadsFields(index *Index, noun string) {
	for _, read := range index.readPaths() {
		if storedField(read.Steps) == "" {
			d.fail(codeContradict, read.position(d.file), "the "+noun+" can read any field, but keep drops fields",
				"begin the path with the name of a field, or remove keep")
			return
		}
	}
}

// checkStorageMode reports an index that reads fields which the storage mode does not store.
func (d *decoder) checkStorageMode(r *Resource, index *Index) {
	for _, read := range index.readPaths() {
		if r.Storage.Mode == "None" {
			d.fail(codeContradict, read.position(d.file), "storage mode None stores no objects to index",
				"use another storage mode, or remove the index or reference")
			return
		}
		if r.Storage.Mode == "Metadata" && (len(read.Steps) == 0 || !selectsOnlyName(read.Steps[0], "metadata")) {
			d.fail(codeContradict, read.position(d.file),
				"the index reads fields that storage mode Metadata does not store",
				"use another storage mode, or an index over metadata")
			return
		}
	}
}

// compileFieldPath compiles a path to remove or keep.
func (d *decoder) compileFieldPath(n *yaml.Node, verb string) *jsonpath.Path {
	p := d.compilePath(n, "a path to "+verb)
	if p == nil {
		return nil
	}
	steps := p.Steps()
	for i, step := range steps {
		elements := len(step.Selectors) == 1 && step.Selectors[0].Kind == jsonpath.SelectElements
		if selectsOnlyName(step, "") || elements && !step.Recursive && i < len(steps)-1 {
			continue
		}
		d.fail(codeContradict, d.file.scalarRange(n, step.Offset, step.End),
			"a path to "+verb+" can only have names and [*], and must end with a name",
			"name the fields on the way")
		return nil
	}
	return p
}

// firstRead returns the first path of the index that can read a value at or below the removed path.
func (i *Index) firstRead(removed *jsonpath.Path) (readPath, bool) {
	return naming.Find(i.readPaths(),
		func(read readPath) bool { return selectsAtOrAbove(removed.Steps(), read.Steps) })
}

// readPath is a path that an index reads, relative to the object.
type readPath struct {
	jsonpath.Read
	// origin is its expression. operand is set for a path in a condition.
	origin  origin
	operand bool
	// each is set for the path of the elements if other paths begin there.
	each bool
}

func (r readPath) position(f *sourceFile) position {
	if r.operand && r.End > 0 {
		return r.origin.position(f, r.Offset, r.End)
	}
	return f.positionOf(r.origin.node)
}

// readsElements reports whether a path begins at an element.
func (i *Index) readsElements() bool {
	return slices.ContainsFunc(i.parts, func(p indexPart) bool {
		return slices.ContainsFunc(p.sources, func(s valuePath) bool { return !s.root })
	})
}

func (i *Index) readPaths() []readPath {
	var out []readPath
	if i.when != nil {
		out = appendOperands(out, i.when.Reads(), i.whenOrigin)
	}
	if i.whenCEL != nil {
		out = appendOperands(out, i.whenCEL.Reads(), i.whenOrigin)
	}
	var base []jsonpath.Step
	if i.each != nil {
		base = i.each.Steps()
		for n, read := range i.each.Reads() {
			out = append(out, readPath{Read: read, origin: i.eachOrigin, each: n == 0 && i.readsElements()})
		}
	}
	for n := range i.parts {
		if p := &i.parts[n]; p.cel != nil {
			out = appendOperands(out, p.cel.Reads(), p.celOrigin)
		}
		for _, s := range i.parts[n].sources {
			origin := s.origin
			if origin.node == nil { // the config does not name the path: it is the namespace of the object
				origin = i.origin()
			}
			for _, read := range s.path.Reads() {
				if !s.root {
					read.Steps = slices.Concat(base, read.Steps)
				}
				out = append(out, readPath{Read: read, origin: origin})
			}
		}
	}
	return out
}

func appendOperands(out []readPath, reads []jsonpath.Read, at origin) []readPath {
	return append(out, naming.Map(reads,
		func(read jsonpath.Read) readPath { return readPath{Read: read, origin: at, operand: true} })...)
}

// selectsAtOrAbove reports whether removed may select a value that read selects, or one of its parents.
// Removed fields inside a value do not matter: an index only tests whether a map exists.
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
