package indexers

import (
	"cmp"
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// compileIndex compiles one index; names holds the index names of the resource so far.
func (d *decoder) compileIndex(form *indexForm, names map[string]string) *Index {
	index := &Index{
		Name: form.Name.value, Sorted: form.Order.value == "Sorted",
		maxValues: d.defaults.maxValues, maxValueBytes: d.defaults.maxValueBytes,
	}
	d.checkUnique(names, "index", form.Name)
	switch name := form.Name; name.value {
	case cache.NamespaceIndex:
		message := fmt.Sprintf("%q is the name of a built-in index", name.value)
		d.failAt(codeDuplicateName, name.node, message, "choose another name, or use that index")
	case "name", "age":
		message := fmt.Sprintf("%q is the name of a built-in sort order", name.value)
		d.failAt(codeDuplicateName, name.node, message, "choose another name")
	}
	index.when, index.whenCEL, index.whenOrigin = d.compileCondition(&form.conditionForm)
	p := pathCompiler{decoder: d, relativeToEach: form.Each.node != nil && form.chosenFields[0] == "key"}
	switch form.chosenFields[0] {
	case "":
	case "key":
		index.each, index.eachOrigin = p.compileEach(form.Each)
		index.unreadable = p.relativeToEach && index.each == nil
		p.compileComposite(form.Key.items, index)
	default:
		index.parts = []indexPart{p.compilePart(&form.partForm)}
	}
	d.checkMissingValues(index)
	d.reportImpossible(index)
	return index
}

// checkMissingValues reports each default that does not have the type of its part.
func (d *decoder) checkMissingValues(index *Index) {
	for n := range index.parts {
		p := &index.parts[n]
		if p.missing.kind != missingValue {
			continue
		}
		if _, ok := p.encode(p.missing.value, index.Sorted); !ok {
			message, hint, _ := strings.Cut(p.typ.Mismatch(p.missing.value), "; ")
			d.failAt(codeValue, p.missing.node, message, hint)
		}
	}
}

// compilePart compiles the sources, type and transforms of a plain index, or of one key of a composite index.
func (p pathCompiler) compilePart(form *partForm) (part indexPart) {
	switch chosen := form.chosenFields[0]; chosen {
	case "path":
		part.sources = p.compileSources(nil, form.Path.node, `"path"`)
	case "paths":
		for _, item := range form.Paths.items {
			part.sources = p.compileSources(part.sources, item.node, "a path")
		}
	case "cel":
		part.cel, part.celOrigin = p.compileCEL(form.CEL), origin{node: form.CEL.node}
	default:
		if name := cmp.Or(form.Label, form.Annotation); name.value != "" &&
			p.checkQualifiedName(name.node, name.value, chosen) {
			part.sources = []valuePath{{
				path: jsonpath.FromSegments("metadata", chosen+"s", name.value), root: p.relativeToEach,
				origin: origin{node: name.node, wholeNodeOnly: true},
			}}
		}
	}
	if form.Type.node != nil {
		part.typ, _ = sortkey.TypeNamed(form.Type.value)
		part.typeNode = form.Type.node
	}
	if form.Regex.node != nil {
		if t := p.compileRegex(&form.Regex); t.apply != nil {
			part.transforms = append(part.transforms, t)
		}
	}
	for _, item := range form.Transform.items {
		part.transforms = append(part.transforms, namedTransforms[item.value])
	}
	part.missing.kind = missingKinds[form.Missing.value]
	if form.Default.isSet {
		part.missing = missingRule{kind: missingValue, value: form.Default.value, node: form.Default.node}
	}
	return part
}

var missingKinds = map[string]missingKind{"Report": missingReport, "AsNull": missingNull}

func (p pathCompiler) compileComposite(keys []keyForm, index *Index) {
	names := map[string]string{}
	var multiValued *yaml.Node // the path of the latest key that can have many values
	for i := range keys {
		f := &keys[i]
		p.checkUnique(names, "key", f.Name)
		if f.chosenFields[0] == "" {
			continue
		}
		part := p.compilePart(&f.partForm)
		part.name = f.Name.value
		if !part.singular() {
			at := part.origin().node
			if multiValued != nil {
				p.failAt(codeMultiValued, at,
					fmt.Sprintf("this key and the one at %s can both have many values", p.file.positionOf(multiValued)),
					"use each: for values of the same element, or index by one value only")
			}
			multiValued = at
		}
		index.Keys, index.parts = append(index.Keys, part.name), append(index.parts, part)
	}
}

type transform struct {
	name string
	// apply returns false if it leaves no value.
	apply func(string) (string, bool)
	// maxInput is the maximum size of input in bytes; 0 means no limit.
	maxInput int
}

func newTransform(name string, f func(string) string) transform {
	return transform{name: name, apply: func(s string) (string, bool) { return f(s), true }}
}

var namedTransforms = map[string]transform{
	"Lower": newTransform("Lower", strings.ToLower),
	"Upper": newTransform("Upper", strings.ToUpper),
	// copied, so that it does not pin a long text
	"Trim": newTransform("Trim", func(s string) string { return strings.Clone(strings.TrimSpace(s)) }),
}

// compileRegex compiles {match, group}.
func (d *decoder) compileRegex(f *regexForm) transform {
	text := f.Match.value
	if text == "" {
		return transform{}
	}
	re, err := naming.CompileRegexp(text)
	if err != nil {
		d.reportRegexError(f.Match.node, text, err)
		return transform{}
	}
	group, last := f.Group.value, re.NumSubexp()
	if group > last {
		d.failAt(codeOutOfRange, f.Group.node, fmt.Sprintf("\"group\" cannot be %d", group),
			fmt.Sprintf("use an integer from 0 to %d", last))
		return transform{}
	}
	apply := func(s string) (string, bool) {
		m := re.FindStringSubmatchIndex(s)
		if m == nil || m[2*group] < 0 {
			return "", false
		}
		return strings.Clone(s[m[2*group]:m[2*group+1]]), true
	}
	return transform{name: fmt.Sprintf("regex %d %q", group, text), maxInput: naming.MaxRegexpInput, apply: apply}
}

// reportRegexError reports an invalid expression at the invalid part.
func (d *decoder) reportRegexError(n *yaml.Node, text string, err error) {
	pos, message := d.file.positionOf(n), err.Error()
	if errors.Is(err, naming.ErrRegexpTooLarge) {
		d.fail(codeRegex, pos, message, "match a part of the text")
		return
	}
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		message = e.Code.String() + ": " + e.Expr
		if i := strings.Index(text, e.Expr); e.Expr != "" && i >= 0 {
			pos = d.file.scalarRange(n, i, i+len(e.Expr))
		}
	}
	d.fail(codeRegex, pos, "this is not a regular expression: "+message,
		"use the syntax of Go (RE2), which has no look-around and no back-references")
}
