package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	yaml "go.yaml.in/yaml/v3"
)

// written is embedded in forms. It holds where the form stands in the file.
type written struct {
	node *yaml.Node
	keys map[string]*yaml.Node
	// excused fields are probably there under a wrong name, or merged in. An error was reported already.
	excused map[string]bool
	// chosen are the first fields that are there of each rule oneOf, or "".
	chosen []string
}

func (w *written) header() *written { return w }

// excuse reports whether an earlier error explains why all the fields are missing.
func (w *written) excuse(names []string) bool {
	for _, name := range names {
		if w.excused[name] {
			return true
		}
	}
	return false
}

// raw is embedded in the types of fields that are compiled from their nodes.
type raw struct{ written }

func (r *raw) read(_ *decoding, n *yaml.Node, _ spot) bool {
	r.node = n
	return true
}

// spot describes a value: what errors call it, and the tag of its field.
type spot struct {
	what string
	tag  reflect.StructTag
	item bool // the value is an element of the field's list
}

// readable is a value that is no map with known fields. Its read method reports what is wrong, and returns
// false if there is nothing to use.
type readable interface {
	read(d *decoding, n *yaml.Node, at spot) bool
}

// textField is a text; value is empty if it was refused.
type textField struct {
	node  *yaml.Node
	value string
	ok    bool
}

func (t *textField) read(d *decoding, n *yaml.Node, at spot) bool {
	t.node = n
	hint, words := at.tag.Get("hint"), at.tag.Get("enum")
	switch {
	case words != "" && at.tag.Get("yes") != "" && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool":
		hint = at.tag.Get("yes")
		if strings.EqualFold(n.Value, "false") {
			hint = at.tag.Get("no")
		}
		t.value, t.ok = d.choiceOr(hint, n, at.what, words)
	case words != "":
		t.value, t.ok = d.choice(n, at.what, strings.Split(words, ",")...)
	case at.tag.Get("pattern") != "":
		t.value, t.ok = d.patterned(n, at)
	default:
		t.value, t.ok = d.textOrEmpty(n, at.what, hint, at.mayBeEmpty())
	}
	return t.ok
}

// mayBeEmpty reports whether an empty text means something.
func (s spot) mayBeEmpty() bool { return s.tag.Get("empty") == "true" && !s.item }

// numberField is an integer; value is 0 if it was refused.
type numberField struct{ value int }

func (f *numberField) read(d *decoding, n *yaml.Node, at spot) (ok bool) {
	f.value, ok = d.number(n, at.what, boundsOf(at.tag))
	return ok
}

type boolField struct{ value bool }

func (f *boolField) read(d *decoding, n *yaml.Node, at spot) bool {
	f.value = d.boolean(n, at.what)
	return true
}

// listField is a list; items are those that can be used.
type listField[T any] struct {
	node  *yaml.Node
	items []T
}

func (l *listField[T]) read(d *decoding, n *yaml.Node, at spot) bool {
	l.node = n
	nodes := []*yaml.Node{n}
	switch {
	case at.tag.Get("single") == "true" && n.Kind != yaml.SequenceNode:
	case at.tag.Get("empty") == "true":
		if !d.want(n, yaml.SequenceNode, at.what, "a list", "write it between [ and ]") {
			return false
		}
		nodes = n.Content
	default:
		hint := at.tag.Get("list")
		if hint == "" {
			hint = at.tag.Get("hint")
		}
		nodes, _ = d.list(n, at.what, hint)
	}
	for _, node := range nodes {
		var item T
		if d.read(&item, node, spot{what: at.tag.Get("each"), tag: at.tag, item: true}) {
			l.items = append(l.items, item)
		}
	}
	return true
}

// textsOf returns the values of a list of texts.
func textsOf(l listField[textField]) (all []string) {
	for _, t := range l.items {
		all = append(all, t.value)
	}
	return all
}

// read reads a value of a form: a readable, or another form.
func (d *decoding) read(into any, n *yaml.Node, at spot) bool {
	if r, ok := into.(readable); ok {
		return r.read(d, n, at)
	}
	return d.form(into, n, at.what)
}

// form reads a map into a form, field by field, and reports what the tags of the fields do not allow. It
// returns false if the node is no map.
func (d *decoding) form(form any, n *yaml.Node, what string) bool {
	v, w := reflect.ValueOf(form).Elem(), form.(interface{ header() *written }).header()
	l := layoutOf(v.Type())
	values, ok := d.mapping(w, n, what, l.names)
	if !ok {
		return false
	}
	for i, name := range l.names {
		tag := l.fields[i].Tag
		switch value := values[name]; {
		case value != nil:
			at := spot{what: tag.Get("what"), tag: tag}
			if at.what == "" {
				at.what = strconv.Quote(name)
			}
			d.read(v.FieldByIndex(l.fields[i].Index).Addr().Interface(), value, at)
			d.conflicts(w, name, tag, l)
		case tag.Get("required") == "true" && !w.excused[name]:
			d.failAt(CodeRequired, n, fmt.Sprintf("%s has no %q", definite(what), name), tag.Get("hint"))
		}
	}
	for _, rule := range l.rules {
		d.rule(w, what, rule, l.names)
	}
	return true
}

// conflicts reports the fields that do not go together with a field that is there.
func (d *decoding) conflicts(w *written, name string, tag reflect.StructTag, l *layout) {
	if with := tag.Get("with"); with != "" && w.keys[with] == nil && !w.excused[with] {
		message := fmt.Sprintf("%q without %q has no meaning", name, with)
		d.failAt(CodeContradict, w.keys[name], message, tag.Get("conflict"))
	}
	for other := range strings.SplitSeq(tag.Get("without"), ",") {
		first, second := name, other
		if l.position(other) < l.position(name) {
			first, second = other, name
		}
		if w.keys[other] != nil {
			d.contradict(w, first, second, tag.Get("conflict"))
		}
	}
}

// contradict reports the second one of two fields that do not go together.
func (d *decoding) contradict(w *written, first, second, hint string) {
	d.failAt(CodeContradict, w.keys[second], fmt.Sprintf("%q and %q do not go together", first, second), hint)
}

// rule checks one rule of a form.
func (d *decoding) rule(w *written, what string, rule reflect.StructTag, all []string) {
	if hint := rule.Get("some"); hint != "" && len(w.keys) == 0 && !w.excuse(all) {
		d.failAt(CodeEmpty, w.node, what+" is empty", hint)
	}
	names := strings.Split(rule.Get("oneOf"), "|")
	chosen := ""
	for _, name := range names {
		switch {
		case w.keys[name] == nil:
		case chosen == "":
			chosen = name
		default:
			d.contradict(w, chosen, name, rule.Get("both"))
		}
	}
	if chosen == "" && rule.Get("none") != "" && !w.excuse(names) {
		d.failAt(CodeRequired, w.node, rule.Get("none"), rule.Get("hint"))
	}
	w.chosen = append(w.chosen, chosen)
}

// layout is what the tags of a form say.
type layout struct {
	names  []string
	fields []reflect.StructField
	rules  []reflect.StructTag
}

func (l *layout) position(name string) int {
	for i := range l.names {
		if l.names[i] == name {
			return i
		}
	}
	return len(l.names)
}

var layouts sync.Map // reflect.Type to *layout

func layoutOf(t reflect.Type) *layout {
	if l, ok := layouts.Load(t); ok {
		return l.(*layout)
	}
	l := &layout{}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name := f.Tag.Get("json"); {
		case name != "":
			l.names, l.fields = append(l.names, name), append(l.fields, f)
		case f.Name == "_":
			l.rules = append(l.rules, f.Tag)
		}
	}
	layouts.Store(t, l)
	return l
}

// tagOf returns the tag of a field of a form.
func tagOf[T any](name string) reflect.StructTag {
	l := layoutOf(reflect.TypeFor[T]())
	return l.fields[l.position(name)].Tag
}

// bounds are the least and the most that a number may be.
type bounds struct{ least, most int }

func boundsOf(tag reflect.StructTag) bounds {
	least, _ := strconv.Atoi(tag.Get("min"))
	most, _ := strconv.Atoi(tag.Get("max"))
	return bounds{least, most}
}

// textRule is what a text has to look like.
type textRule struct {
	*regexp.Regexp
	// hint says it in words.
	hint string
}

// textRules are the values of the tag pattern.
var textRules = map[string]textRule{
	"name": {
		regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`),
		"use letters, digits, and between them . _ -, at most 253 in all",
	},
	"namespace": {
		regexp.MustCompile(`^[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?$`),
		"use lower-case letters, digits, - and, for any run of characters, *",
	},
	"label": {
		regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`),
		"use lower-case letters, digits and between them -, at most 63 in all",
	},
	"pattern": {
		regexp.MustCompile(`^[A-Za-z0-9*]([A-Za-z0-9.*-]{0,251}[A-Za-z0-9*])?$`),
		"use letters, digits, - . and, for any run of characters, *",
	},
}

// patterned reads a text that has to look as the tag says.
func (d *decoding) patterned(n *yaml.Node, at spot) (string, bool) {
	rule := textRules[at.tag.Get("pattern")]
	hint := rule.hint
	switch own := at.tag.Get("hint"); {
	case at.tag.Get("pattern") == "pattern" && n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "?"):
		hint = "in a pattern * stands for any run of characters, and nothing stands for one"
	case own != "" && at.tag.Get("required") == "":
		hint = own
	}
	s, ok := d.textOrEmpty(n, at.what, hint, at.mayBeEmpty())
	if ok && s != "" && !rule.MatchString(s) {
		d.failAt(CodeName, n, fmt.Sprintf("%s cannot be %q", at.what, s), hint)
		return "", false
	}
	return s, ok
}
