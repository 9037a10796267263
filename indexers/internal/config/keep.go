package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// With returns the paths and the fields that indexes read; nil if all fields are kept.
func (k Keep) With(indexes []*Index) []*jsonpath.Path {
	if k.Paths == nil {
		return nil
	}
	all := slices.Clip(k.Paths)
	for _, index := range indexes {
		for _, read := range index.readPaths() {
			if path := literalPath(fieldOf(elementsOf(read.Steps))); path != nil && !read.each {
				all = append(all, path)
			}
		}
	}
	slices.SortFunc(all, func(a, b *jsonpath.Path) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(all, func(a, b *jsonpath.Path) bool { return a.String() == b.String() })
}

// checkKept reports an index that may read any field.
func (d *decoder) checkKept(r *Resource, index *Index) {
	if r.Keep.Paths == nil || !index.Complete() {
		return
	}
	for _, read := range index.readPaths() {
		if literalPath(fieldOf(elementsOf(read.Steps))) == nil {
			d.fail(CodeContradict, read.position(d.file), "the index can read any field, but keep drops fields",
				"begin the path with the name of a field, or remove keep")
			return
		}
	}
}

func (d *decoder) checkNotWhole(n *yaml.Node, p *jsonpath.Path) bool {
	if len(p.Steps()) == 0 {
		d.failAt(CodeContradict, n, "$ keeps all fields", "name a field, or remove keep")
		return false
	}
	return true
}

// elementsOf returns the steps with [*] for each step that selects elements of a list.
func elementsOf(steps []jsonpath.Step) []jsonpath.Step {
	steps = slices.Clone(steps)
	for i, step := range steps {
		isName := func(s jsonpath.Selector) bool { return s.Kind == jsonpath.SelectName }
		if !step.Recursive && !slices.ContainsFunc(step.Selectors, isName) {
			steps[i].Selectors = []jsonpath.Selector{{Kind: jsonpath.SelectElements}}
		}
	}
	return steps
}

// plainSteps returns the number of leading steps that are names or [*].
func plainSteps(steps []jsonpath.Step) int {
	plain := func(s jsonpath.Step) bool {
		kind := s.Selectors[0].Kind
		return !s.Recursive && len(s.Selectors) == 1 &&
			(kind == jsonpath.SelectName || kind == jsonpath.SelectElements)
	}
	if i := slices.IndexFunc(steps, func(s jsonpath.Step) bool { return !plain(s) }); i >= 0 {
		return i
	}
	return len(steps)
}

// fieldOf returns the longest prefix of names and [*] that ends in a name.
func fieldOf(steps []jsonpath.Step) []jsonpath.Step {
	steps = steps[:plainSteps(steps)]
	for len(steps) > 0 && steps[len(steps)-1].Selectors[0].Kind == jsonpath.SelectElements {
		steps = steps[:len(steps)-1]
	}
	return steps
}

// literalPath returns a path of names and [*]; nil if there are no steps or too many.
func literalPath(steps []jsonpath.Step) *jsonpath.Path {
	if len(steps) == 0 {
		return nil
	}
	text := "$"
	for _, step := range steps {
		if step.Selectors[0].Kind == jsonpath.SelectElements {
			text += "[*]"
		} else {
			text += strings.TrimPrefix(jsonpath.FromSegments(step.Selectors[0].Name).String(), "$")
		}
	}
	p, err := jsonpath.Compile(text)
	if err != nil {
		return nil
	}
	return p
}
