package indexers

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	yaml "go.yaml.in/yaml/v3"
)

// formHeader is embedded in forms, which are structs that are decoded from YAML maps. It holds the nodes of
// the map, which have the positions for errors.
type formHeader struct {
	node *yaml.Node
	keys map[string]*yaml.Node
	// excusedFields are the fields that are not reported as missing. An earlier error explains each: a
	// misspelled or removed field, an alias, or a merge key.
	excusedFields map[string]bool
	// chosenFields has an element for each oneOf rule: the first alternative that is set, or "" if none is
	// set or the node is not a map.
	chosenFields []string
}

func (f *formHeader) header() *formHeader { return f }

// excuse reports whether an earlier error explains why all the fields are missing.
func (f *formHeader) excuse(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return f.excusedFields[name] })
}

// rawField is embedded in the types of fields that are compiled from their nodes.
type rawField struct{ formHeader }

func (r *rawField) read(_ *decoder, n *yaml.Node, _ valueContext) bool {
	r.node = n
	return true
}

// valueContext describes a value: its name in errors, and the tag of its field.
type valueContext struct {
	name string
	tag  reflect.StructTag
	item bool // the value is an element of a list field
}

// valueReader is a value that is not a map with known fields. read reports errors and returns false if there
// is no usable value.
type valueReader interface {
	read(d *decoder, n *yaml.Node, at valueContext) bool
}

// textField is a text; value is empty after an error.
type textField struct {
	node  *yaml.Node
	value string
	isSet bool
}

func (t *textField) read(d *decoder, n *yaml.Node, at valueContext) bool {
	t.node = n
	hint, words := at.tag.Get("hint"), at.tag.Get("enum")
	switch {
	case words != "":
		if at.tag.Get("required") != "" { // the hint is about the missing field
			hint = ""
		}
		t.value, t.isSet = d.decodeChoice(n, at.name, hint, strings.Split(words, ","))
	case at.tag.Get("pattern") != "":
		t.value, t.isSet = d.decodePattern(n, at)
	default:
		t.value, t.isSet = d.decodeOptionalText(n, at.name, hint, at.mayBeEmpty())
	}
	return t.isSet
}

func (v valueContext) mayBeEmpty() bool { return v.tag.Get("empty") == "true" && !v.item }

// numberField is an integer; value is 0 after an error.
type numberField struct {
	node  *yaml.Node
	value int
}

func (f *numberField) read(d *decoder, n *yaml.Node, at valueContext) bool {
	f.node = n
	least, most := rangeOf(at.tag)
	hint := fmt.Sprintf("use an integer from %d to %d", least, most)
	switch i, err := strconv.Atoi(n.Value); {
	case !d.checkNodeKind(n, yaml.ScalarNode, at.name, "an integer", hint):
	case n.ShortTag() != "!!int":
		d.reportWrongKind(n, at.name, "an integer", hint)
	case err != nil || i < least || i > most:
		d.failAt(codeOutOfRange, n, fmt.Sprintf("%s cannot be %s", at.name, n.Value), hint)
	default:
		f.value = i
		return true
	}
	return false
}

// boolField is a boolean; value is false after an error.
type boolField struct{ value bool }

func (f *boolField) read(d *decoder, n *yaml.Node, at valueContext) bool {
	switch {
	case !d.checkNodeKind(n, yaml.ScalarNode, at.name, "true or false", "write true or false"):
	case n.ShortTag() != "!!bool":
		d.reportWrongKind(n, at.name, "true or false", "write true or false, without quotes")
	default:
		f.value = strings.EqualFold(n.Value, "true")
	}
	return true
}

// listField is a list; items are the valid elements.
type listField[T any] struct {
	node  *yaml.Node
	items []T
}

func (l *listField[T]) read(d *decoder, n *yaml.Node, at valueContext) bool {
	l.node = n
	hint := cmp.Or(at.tag.Get("list"), at.tag.Get("hint"))
	if at.mayBeEmpty() {
		hint = "write it between [ and ]"
	}
	if !d.checkNodeKind(n, yaml.SequenceNode, at.name, "a list", hint) {
		return false
	}
	if len(n.Content) == 0 && !at.mayBeEmpty() {
		d.failAt(codeEmpty, n, at.name+" is empty", hint)
	}
	for _, node := range n.Content {
		var item T
		if d.read(&item, node, valueContext{name: at.tag.Get("each"), tag: at.tag, item: true}) {
			l.items = append(l.items, item)
		}
	}
	return true
}

func textsOf(l listField[textField]) (texts []string) {
	for _, t := range l.items {
		texts = append(texts, t.value)
	}
	return texts
}

// read decodes a valueReader or a form.
func (d *decoder) read(into any, n *yaml.Node, at valueContext) bool {
	if r, ok := into.(valueReader); ok {
		return r.read(d, n, at)
	}
	return d.decodeForm(into, n, at.name)
}

// decodeForm decodes a map into a form and checks the constraints in the tags. It returns false if the node
// is not a map.
func (d *decoder) decodeForm(form any, n *yaml.Node, noun string) bool {
	structValue, header := reflect.ValueOf(form).Elem(), form.(interface{ header() *formHeader }).header()
	formLayout := layoutOf(structValue.Type())
	values, ok := d.decodeMapping(header, n, noun, formLayout.names)
	if !ok {
		header.chosenFields = make([]string, len(formLayout.rules))
		return false
	}
	for i, name := range formLayout.names {
		tag := formLayout.fields[i].Tag
		switch value := values[name]; {
		case value != nil:
			at := valueContext{name: cmp.Or(tag.Get("label"), strconv.Quote(name)), tag: tag}
			d.read(structValue.FieldByIndex(formLayout.fields[i].Index).Addr().Interface(), value, at)
			d.checkConflicts(header, name, tag)
		case tag.Get("required") == "true" && !header.excusedFields[name]:
			d.failAt(codeRequired, n, fmt.Sprintf("%s has no %q", definiteArticle(noun), name), tag.Get("hint"))
		}
	}
	for _, rule := range formLayout.rules {
		d.checkRule(header, noun, rule, formLayout.names)
	}
	return true
}

// checkConflicts reports fields that exclude or need each other.
func (d *decoder) checkConflicts(header *formHeader, name string, tag reflect.StructTag) {
	companion := tag.Get("with")
	if companion != "" && header.keys[companion] == nil && !header.excusedFields[companion] {
		message := fmt.Sprintf("%q without %q has no meaning", name, companion)
		d.failAt(codeContradict, header.keys[name], message, tag.Get("conflict"))
	}
	for other := range strings.SplitSeq(tag.Get("without"), ",") {
		if header.keys[other] != nil {
			d.reportConflict(header, name, other, tag.Get("conflict"))
		}
	}
}

// reportConflict reports the second of two fields that exclude each other.
func (d *decoder) reportConflict(header *formHeader, first, second, hint string) {
	d.failAt(codeContradict, header.keys[second], fmt.Sprintf("%q and %q cannot be combined", first, second), hint)
}

func (d *decoder) checkRule(header *formHeader, noun string, rule reflect.StructTag, fieldNames []string) {
	if hint := rule.Get("some"); hint != "" && len(header.keys) == 0 && !header.excuse(fieldNames) {
		d.failAt(codeEmpty, header.node, noun+" is empty", hint)
	}
	names := strings.Split(rule.Get("oneOf"), "|")
	chosen := ""
	for _, name := range names {
		switch {
		case header.keys[name] == nil:
		case chosen == "":
			chosen = name
		case rule.Get("both") != "":
			d.reportConflict(header, chosen, name, rule.Get("both"))
		}
	}
	if chosen == "" && rule.Get("none") != "" && !header.excuse(names) {
		d.failAt(codeRequired, header.node, rule.Get("none"), rule.Get("hint"))
	}
	header.chosenFields = append(header.chosenFields, chosen)
}

// layout holds the fields and rules of a form.
type layout struct {
	names  []string
	fields []reflect.StructField
	rules  []reflect.StructTag
}

var layouts sync.Map // reflect.Type to *layout

// versionReplacer fills the apiVersion into tags.
var versionReplacer = strings.NewReplacer("VERSION", APIVersion)

func layoutOf(t reflect.Type) *layout {
	if l, ok := layouts.Load(t); ok {
		return l.(*layout)
	}
	l := &layout{}
	narrowed := map[string]reflect.StructTag{}
	l.add(t, nil, narrowed)
	for name, tag := range narrowed {
		l.fields[slices.Index(l.names, name)].Tag = tag
	}
	layouts.Store(t, l)
	return l
}

// add adds the fields of a form, which is at an index of the outer form. The tag of a blank field replaces
// that of the embedded field that it narrows.
func (l *layout) add(t reflect.Type, outerIndex []int, narrowed map[string]reflect.StructTag) {
	for i := range t.NumField() {
		f := t.Field(i)
		f.Index = append(slices.Clone(outerIndex), i)
		f.Tag = reflect.StructTag(versionReplacer.Replace(string(f.Tag)))
		switch name := f.Tag.Get("json"); {
		case name != "":
			l.names, l.fields = append(l.names, name), append(l.fields, f)
		case f.Tag.Get("narrows") != "":
			narrowed[f.Tag.Get("narrows")] = f.Tag
		case f.Name == "_":
			l.rules = append(l.rules, f.Tag)
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			l.add(f.Type, f.Index, narrowed)
		}
	}
}

func tagOf[T any](name string) reflect.StructTag {
	l := layoutOf(reflect.TypeFor[T]())
	return l.fields[slices.Index(l.names, name)].Tag
}

func rangeOf(tag reflect.StructTag) (least, most int) {
	least, _ = strconv.Atoi(tag.Get("min"))
	most, _ = strconv.Atoi(tag.Get("max"))
	return least, most
}

// lazyPattern is a regular expression that is compiled when it is first used. Compiling all of them takes a
// millisecond, and most commands use none.
type lazyPattern struct {
	expression string
	compile    func() *regexp.Regexp
}

func newLazyPattern(expression string) lazyPattern {
	return lazyPattern{expression,
		sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

type textRule struct {
	lazyPattern
	hint string
}

// textRules are the values of the tag pattern.
var textRules = map[string]textRule{
	"name": {
		newLazyPattern(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`),
		"use at most 253 letters, digits and . _ -, with a letter or digit at both ends",
	},
	"namespace": {
		newLazyPattern(`^[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?$`),
		"use lower-case letters, digits, - and the wildcard *",
	},
	"label": {
		newLazyPattern(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`),
		"use at most 63 lower-case letters, digits and -, with a letter or digit at both ends",
	},
	"metric": {
		newLazyPattern(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,199}$`),
		"use at most 200 letters, digits, _ and :, without a digit at the beginning",
	},
	"labelName": {
		newLazyPattern(`^([a-zA-Z]|_[a-zA-Z0-9]|_?\*$)[a-zA-Z0-9_]{0,98}\*?$`),
		"use at most 100 letters, digits and _, without a digit or two _ at the beginning",
	},
	"pattern": {
		newLazyPattern(`^[A-Za-z0-9*]([A-Za-z0-9.*-]{0,251}[A-Za-z0-9*])?$`),
		"use letters, digits, - . and the wildcard *",
	},
}

// decodePattern decodes a text that must match the tag pattern.
func (d *decoder) decodePattern(n *yaml.Node, at valueContext) (string, bool) {
	rule := textRules[at.tag.Get("pattern")]
	hint := rule.hint
	switch fieldHint := at.tag.Get("hint"); {
	case at.tag.Get("pattern") == "pattern" && n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "?"):
		hint = "the only wildcard is *, which matches any characters"
	case fieldHint != "" && at.tag.Get("required") == "":
		hint = fieldHint
	}
	s, ok := d.decodeOptionalText(n, at.name, hint, at.mayBeEmpty())
	if ok && s != "" && !rule.compile().MatchString(s) {
		d.failAt(codeName, n, fmt.Sprintf("%s cannot be %q", at.name, s), hint)
		return "", false
	}
	return s, ok
}
