package config

import (
	"errors"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// pathCompiler compiles the expressions of one index or reference.
type pathCompiler struct {
	*decoder
	// relativeToEach means that paths begin at an element of each.
	relativeToEach bool
}

func (p pathCompiler) compileSources(to []Source, n *yaml.Node, noun string) []Source {
	path, at := p.compilePath(n, noun)
	if path == nil {
		return to
	}
	return append(to, Source{Path: path, Root: p.relativeToEach && path.Rooted(), Origin: at})
}

// compilePath compiles an expression or a list of names. It returns nil after reporting an error.
func (d *decoder) compilePath(n *yaml.Node, noun string) (*jsonpath.Path, Origin) {
	at := Origin{Node: n}
	const hint = "write a path such as .spec.name, or a list of names such as [spec, name]"
	if n.Kind == yaml.SequenceNode {
		items, ok := d.decodeList(n, noun, hint)
		names := make([]string, 0, len(items))
		for _, item := range items {
			s, valid := d.decodeText(item, "a name in a path", "write the name of a field")
			names, ok = append(names, s), ok && valid
		}
		if !ok || d.reportPathAsName(items) {
			return nil, at
		}
		at.segments = items
		return jsonpath.FromSegments(names...), at
	}
	return compileExpression(d, n, noun, hint, jsonpath.Compile), at
}

// compileFilter compiles a condition. It returns nil after reporting an error.
func (d *decoder) compileFilter(f conditionForm) (*jsonpath.Filter, Origin) {
	if f.node == nil {
		return nil, Origin{}
	}
	const hint = `write a condition such as '@.spec.paused == true'`
	return compileExpression(d, f.node, `"when"`, hint, jsonpath.CompileFilter), Origin{Node: f.node}
}

// compileExpression compiles the text of an expression, or returns nil.
func compileExpression[E interface{ Warnings() []jsonpath.Diagnostic }](
	d *decoder, n *yaml.Node, noun, hint string, compile func(string) (E, error),
) (none E) {
	if d.reportUnquoted(n, noun) {
		return none
	}
	text, ok := d.decodeText(n, noun, hint)
	if !ok {
		return none
	}
	expression, err := compile(text)
	if err != nil {
		var e *jsonpath.Error
		if errors.As(err, &e) {
			d.reportExpression(n, e.Diagnostic)
		} else {
			d.failAt(CodeWrongType, n, err.Error(), "correct the expression")
		}
		return none
	}
	for _, w := range expression.Warnings() {
		d.reportExpression(n, w)
	}
	return expression
}

// reportExpression reports a finding about an expression at its position in the file.
func (d *decoder) reportExpression(n *yaml.Node, e jsonpath.Diagnostic) {
	hint := e.Hint
	if hint == "" {
		hint = "correct the expression"
	}
	d.fail(Code(e.Code), d.file.Within(n, e.Offset, e.Offset+e.Length), e.Message, hint)
}

// reportUnquoted reports an expression that YAML does not read as text without quotes: {.a} is a map, and
// !(@.a) a tag.
func (d *decoder) reportUnquoted(n *yaml.Node, noun string) bool {
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
	d.failAt(CodeWrongType, n, noun+" needs quotes around it",
		"write '"+strings.ReplaceAll(text, "'", "''")+"'")
	return true
}

// compileEach compiles the path to the elements. It must not contain "..", which would read nested elements
// many times.
func (d *decoder) compileEach(f pathForm) (*jsonpath.Path, Origin) {
	if f.node == nil {
		return nil, Origin{}
	}
	path, at := d.compilePath(f.node, `"each"`)
	if path == nil {
		return nil, at
	}
	steps := path.Steps()
	if i := slices.IndexFunc(steps, func(s jsonpath.Step) bool { return s.Recursive }); i >= 0 {
		d.fail(Code(jsonpath.CodeWork), d.file.Within(f.node, steps[i].Offset, steps[i].End),
			`".." in "each" reads elements many times`, "name the fields on the way to the elements")
		return nil, at
	}
	return path, at
}
