package config

import (
	"errors"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// paths compiles the expressions of one index or reference.
type paths struct {
	*decoder
	dialect jsonpath.Dialect
	// within means that paths begin at an element of each.
	within bool
}

func (p paths) sources(to []Source, n *yaml.Node, what string) []Source {
	path, at := p.path(n, what)
	if path == nil {
		return to
	}
	return append(to, Source{Path: path, Root: p.within && path.Rooted(), At: at})
}

// path compiles an expression or a list of names. It returns nil after reporting an error.
func (p paths) path(n *yaml.Node, what string) (*jsonpath.Path, Origin) {
	at := Origin{Node: n}
	const hint = "write a path such as .spec.name, or a list of names such as [spec, name]"
	if n.Kind == yaml.SequenceNode {
		items, ok := p.list(n, what, hint)
		names := make([]string, 0, len(items))
		for _, item := range items {
			s, good := p.text(item, "a name in a path", "write the name of a field")
			names, ok = append(names, s), ok && good
		}
		if !ok || p.pathAsName(items) {
			return nil, at
		}
		at.segments = items
		return jsonpath.FromSegments(names...), at
	}
	return compiled(p, n, what, hint, jsonpath.Compile), at
}

// filter compiles a condition. It returns nil after reporting an error.
func (p paths) filter(f conditionForm) (*jsonpath.Filter, Origin) {
	if f.node == nil {
		return nil, Origin{}
	}
	const hint = `write a condition such as '@.spec.paused == true'`
	return compiled(p, f.node, `"when"`, hint, jsonpath.CompileFilter), Origin{Node: f.node}
}

// compiled compiles the text of an expression, or returns nil.
func compiled[E interface{ Warnings() []jsonpath.Diagnostic }](
	p paths, n *yaml.Node, what, hint string, compile func(string, ...jsonpath.Option) (E, error),
) (none E) {
	if p.unquoted(n, what) {
		return none
	}
	text, ok := p.text(n, what, hint)
	if !ok {
		return none
	}
	expression, err := compile(text, jsonpath.WithDialect(p.dialect))
	if err != nil {
		var e *jsonpath.Error
		if errors.As(err, &e) {
			p.expression(n, e.Diagnostic)
		} else {
			p.failAt(CodeWrongType, n, err.Error(), "correct the expression")
		}
		return none
	}
	for _, w := range expression.Warnings() {
		p.expression(n, w)
	}
	return expression
}

// expression reports a finding about an expression at its place in the file.
func (d *decoder) expression(n *yaml.Node, e jsonpath.Diagnostic) {
	hint := e.Hint
	if hint == "" {
		hint = "correct the expression"
	}
	d.fail(Code(e.Code), d.file.Within(n, e.Offset, e.Offset+e.Length), e.Message, hint)
}

// unquoted reports an expression that YAML does not read as text without quotes: {.a} is a map, and !(@.a) a
// tag.
func (d *decoder) unquoted(n *yaml.Node, what string) bool {
	text := ""
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Kind == yaml.ScalarNode &&
		isNull(n.Content[1]) && n.Style&yaml.FlowStyle != 0:
		text = "{" + n.Content[0].Value + "}"
	case n.Kind == yaml.ScalarNode && strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") &&
		strings.ContainsAny(n.Tag, "(@"):
		text = strings.TrimSpace(n.Tag + " " + n.Value)
	default:
		return false
	}
	d.failAt(CodeWrongType, n, what+" needs quotes around it",
		"write '"+strings.ReplaceAll(text, "'", "''")+"'")
	return true
}

// each compiles the path to the elements. It must not contain "..", which would read nested elements many
// times.
func (p paths) each(f pathForm) (*jsonpath.Path, Origin) {
	if f.node == nil {
		return nil, Origin{}
	}
	path, at := p.path(f.node, `"each"`)
	if path == nil {
		return nil, at
	}
	if step, ok := recursiveStep(path.Steps()); ok {
		p.fail(Code(jsonpath.CodeWork), p.file.Within(f.node, step.Offset, step.End),
			`".." in "each" reads elements many times`, "name the fields on the way to the elements")
		return nil, at
	}
	return path, at
}

// recursiveStep returns a step with "..", which can be in a union.
func recursiveStep(steps []jsonpath.Step) (jsonpath.Step, bool) {
	for _, step := range steps {
		if step.Recursive {
			return step, true
		}
		for _, s := range step.Selectors {
			if inner, ok := recursiveStep(s.Path); ok {
				return inner, true
			}
		}
	}
	return jsonpath.Step{}, false
}
