package config

import (
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// checkQualifiedName checks the name of a label or an annotation.
func (d *decoder) checkQualifiedName(n *yaml.Node, name, field string) bool {
	problems := validation.IsQualifiedName(name)
	if field == "annotation" { // like the server, which compares their names in lower case
		problems = validation.IsQualifiedName(strings.ToLower(name))
	}
	if len(problems) == 0 {
		return true
	}
	hint := "write the name alone, such as example.io/team"
	if key, value, ok := strings.Cut(name, "="); ok && len(validation.IsQualifiedName(key)) == 0 {
		hint = fmt.Sprintf("write %s, and query the value %q", key, value)
	}
	d.failAt(CodeImpossible, n, fmt.Sprintf("no %s has the name %q", field, name), hint)
	return false
}

// reportPathAsName reports a list of paths in place of the names of one path.
func (d *decoder) reportPathAsName(items []*yaml.Node) bool {
	for _, item := range items {
		path, err := jsonpath.Compile(item.Value)
		if err != nil || len(path.Steps()) < 2 || !strings.ContainsAny(item.Value[:1], ".$@{") {
			continue
		}
		hint := "a list is the names in one path, as in [spec, name]; write a path as it is"
		if len(items) > 1 {
			hint = "a list is the names in one path, as in [spec, name]; for the first of several paths write paths:"
		}
		d.failAt(CodeImpossible, item, fmt.Sprintf("no field has the name %q", item.Value), hint)
		return true
	}
	return false
}

// reportImpossible reports paths to labels and annotations that no object can have.
func (d *decoder) reportImpossible(index *Index) {
	var each []jsonpath.Step
	if index.Each != nil {
		each = index.Each.Steps()
	}
	for _, p := range index.Parts {
		for _, s := range p.Sources {
			if s.Origin.Node == nil || s.Origin.wholeNodeOnly { // label: and annotation: were checked before
				continue
			}
			steps, before := s.Path.Steps(), 0
			if index.Each != nil && !s.Root {
				steps, before = slices.Concat(each, steps), len(each)
			}
			d.checkPossible(s.Origin, steps, before)
		}
	}
}

// checkPossible checks one path; its first steps are from each.
func (d *decoder) checkPossible(at Origin, steps []jsonpath.Step, before int) {
	if len(steps) < 3 || before > 2 || !selectsOnlyName(steps[0], "metadata") || !selectsOnlyName(steps[2], "") {
		return
	}
	field := ""
	for _, name := range []string{"label", "annotation"} {
		if selectsOnlyName(steps[1], name+"s") {
			field = name
		}
	}
	if field == "" {
		return
	}
	var names []string
	for _, step := range steps[2:] {
		if !selectsOnlyName(step, "") {
			names = nil
			break
		}
		names = append(names, step.Selectors[0].Name)
	}
	positionOf := func(i int) Position { return at.Position(d.file, i-before, steps[i].Offset, steps[i].End) }
	name := steps[2].Selectors[0].Name
	switch {
	case len(names) > 1:
		key := strings.Join(names, ".")
		d.fail(CodeImpossible, positionOf(3), fmt.Sprintf("there is nothing below the %s %q, which is text", field,
			name), fmt.Sprintf("for the %s %s write %s: %s in place of the path, or .metadata.%ss[%q]", field, key,
			field, key, field, key))
	case len(steps) > 3:
		d.fail(CodeImpossible, positionOf(3), fmt.Sprintf("there is nothing below the %s %q, which is text", field,
			name), "end the path before it")
	case len(validation.IsQualifiedName(strings.ToLower(name))) > 0:
		d.fail(CodeImpossible, positionOf(2), fmt.Sprintf("no %s has the name %q", field, name),
			"write the name alone, such as example.io/team")
	}
}

// selectsOnlyName reports whether a step selects this name, or any name for "".
func selectsOnlyName(step jsonpath.Step, name string) bool {
	return !step.Recursive && len(step.Selectors) == 1 && step.Selectors[0].Kind == jsonpath.SelectName &&
		(name == "" || step.Selectors[0].Name == name)
}
