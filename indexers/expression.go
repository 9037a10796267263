package indexers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// pathCompiler compiles the expressions of one index or reference.
type pathCompiler struct {
	*decoder
	// relativeToEach means that paths begin at an element of each.
	relativeToEach bool
}

func (p pathCompiler) compileSources(to []valuePath, n *yaml.Node, noun string) []valuePath {
	path := p.compilePath(n, noun)
	if path == nil {
		return to
	}
	if rest, isCEL := strings.CutPrefix(n.Value, "self."); isCEL && !p.relativeToEach {
		p.failAt(codeImpossible, n, selfInPath, "write "+quoted("."+rest))
		return to
	}
	return append(to, valuePath{path: path, root: p.relativeToEach && path.Rooted(), origin: origin{node: n}})
}

// compilePath compiles a path. It returns nil after reporting an error.
func (d *decoder) compilePath(n *yaml.Node, noun string) *jsonpath.Path {
	hint := "write a path such as .spec.name"
	if text := pathOfNames(n); text != "" {
		hint = "write " + quoted(text)
	}
	return compileExpression(d, n, noun, hint, jsonpath.Compile)
}

// pathOfNames returns the path of a list of names; "" for a node that is no such list.
func pathOfNames(n *yaml.Node) string {
	var names []string
	for _, item := range n.Content {
		isName := n.Kind == yaml.SequenceNode && item.Kind == yaml.ScalarNode && item.ShortTag() == "!!str"
		other, err := jsonpath.Compile(item.Value)
		isPath := err == nil && len(other.Steps()) > 1 && strings.IndexAny(item.Value, ".$@{") == 0
		if !isName || item.Value == "" || isPath {
			return ""
		}
		names = append(names, item.Value)
	}
	return fieldText(jsonpath.FromSegments(names...).Steps())
}

// quoted returns a text as YAML.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// compileCondition compiles a condition: a filter, or a CEL expression. It returns nil for both after
// reporting an error.
func (d *decoder) compileCondition(form *conditionForm) (*jsonpath.Filter, expression.Expression, origin) {
	if cel := form.WhenCEL; cel.node != nil {
		e := d.compileCEL(cel)
		if e != nil && e.Result() != expression.Bool && e.Result() != expression.Any {
			d.failAt(codeCEL, cel.node, notBoolean, notBooleanHint)
			e = nil
		}
		return nil, e, origin{node: cel.node}
	}
	if form.When.node == nil {
		return nil, nil, origin{}
	}
	const hint = "write a condition such as '@.spec.paused == true', or whenCEL: 'self.spec.paused == true'"
	at := origin{node: form.When.node}
	if text := at.node.Value; strings.HasPrefix(strings.TrimLeft(text, "!( "), "self.") {
		d.failAt(codeImpossible, at.node, selfInPath, "write whenCEL: "+quoted(text))
		return nil, nil, at
	}
	return compileExpression(d, at.node, `"when"`, hint, jsonpath.CompileFilter), nil, at
}

const (
	selfInPath     = `"self" is the object only in CEL`
	notBoolean     = "the result of a condition must be a boolean"
	notBooleanHint = "compare the value, as in self.spec.size > 2"
)

// compileCEL compiles a CEL expression. It returns nil after reporting an error.
func (d *decoder) compileCEL(f textField) expression.Expression {
	if !f.isSet {
		return nil
	}
	e, err := expression.Compile(f.value)
	var invalid *expression.Error
	switch {
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			d.fail(codeCEL, d.file.scalarRange(f.node, p.Offset, p.End), p.Message, p.Hint)
		}
	case err != nil:
		d.failAt(codeCEL, f.node, err.Error(), expression.NoCompilerRemedy)
	default:
		return e
	}
	return nil
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
		if e, ok := errors.AsType[*jsonpath.Error](err); ok {
			d.reportExpression(n, e.Diagnostic)
		} else {
			d.failAt(codeWrongType, n, err.Error(), "correct the expression")
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
	d.fail(Code(e.Code), d.file.scalarRange(n, e.Offset, e.Offset+e.Length), e.Message,
		cmp.Or(e.Hint, "correct the expression"))
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
	d.failAt(codeWrongType, n, noun+" needs quotes around it", "write "+quoted(text))
	return true
}

// compileEach compiles the path to the elements. It must not contain "..", which would read nested elements
// many times.
func (d *decoder) compileEach(f pathForm) (*jsonpath.Path, origin) {
	if f.node == nil {
		return nil, origin{}
	}
	path, at := d.compilePath(f.node, `"each"`), origin{node: f.node}
	if path == nil {
		return nil, at
	}
	steps := path.Steps()
	if i := slices.IndexFunc(steps, func(s jsonpath.Step) bool { return s.Recursive }); i >= 0 {
		d.fail(Code(jsonpath.CodeWork), d.file.scalarRange(f.node, steps[i].Offset, steps[i].End),
			`".." in "each" reads elements many times`, "name the fields on the way to the elements")
		return nil, at
	}
	return path, at
}

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
	d.failAt(codeImpossible, n, fmt.Sprintf("no %s has the name %q", field, name), hint)
	return false
}

// reportImpossible reports paths to labels and annotations that no object can have.
func (d *decoder) reportImpossible(index *Index) {
	var each []jsonpath.Step
	if index.each != nil {
		each = index.each.Steps()
	}
	for _, p := range index.parts {
		for _, s := range p.sources {
			if s.origin.node == nil || s.origin.wholeNodeOnly { // label: and annotation: were checked before
				continue
			}
			steps, before := s.path.Steps(), 0
			if index.each != nil && !s.root {
				steps, before = slices.Concat(each, steps), len(each)
			}
			d.checkPossible(s.origin, steps, before)
		}
	}
}

// checkPossible checks one path; its first steps are from each.
func (d *decoder) checkPossible(at origin, steps []jsonpath.Step, eachSteps int) {
	if len(steps) < 3 || eachSteps > 2 || !selectsOnlyName(steps[0], "metadata") || !selectsOnlyName(steps[2], "") {
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
	positionOf := func(i int) position {
		return at.position(d.file, steps[i].Offset, steps[i].End)
	}
	name := steps[2].Selectors[0].Name
	switch {
	case len(names) > 1:
		key := strings.Join(names, ".")
		d.fail(codeImpossible, positionOf(3), fmt.Sprintf("there is nothing below the %s %q, which is text", field,
			name), fmt.Sprintf("for the %s %s write %s: %s in place of the path, or .metadata.%ss[%q]", field, key,
			field, key, field, key))
	case len(steps) > 3:
		d.fail(codeImpossible, positionOf(3), fmt.Sprintf("there is nothing below the %s %q, which is text", field,
			name), "end the path before it")
	case len(validation.IsQualifiedName(strings.ToLower(name))) > 0:
		d.fail(codeImpossible, positionOf(2), fmt.Sprintf("no %s has the name %q", field, name),
			"write the name alone, such as example.io/team")
	}
}

// selectsOnlyName reports whether a step selects this name, or any name for "".
func selectsOnlyName(step jsonpath.Step, name string) bool {
	return !step.Recursive && len(step.Selectors) == 1 && step.Selectors[0].Kind == jsonpath.SelectName &&
		(name == "" || step.Selectors[0].Name == name)
}
