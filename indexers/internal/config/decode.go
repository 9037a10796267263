package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// decoder decodes one document. Its methods report errors and continue, so that all errors are found
// together; ok is false if there is no usable result.
type decoder struct {
	*Loader
	file     *File
	config   string // metadata.name
	defaults defaults
}

func (d *decoder) fail(code Code, at Position, message, hint string) {
	d.report(d.file.Finding(code, at, message, hint))
}

// failAt reports a finding about a whole node.
func (d *decoder) failAt(code Code, n *yaml.Node, message, hint string) {
	d.fail(code, d.file.PlaceOf(n), message, hint)
}

// definiteArticle replaces the indefinite article: "an index" becomes "the index".
func definiteArticle(what string) string {
	for _, article := range []string{"a ", "an "} {
		if rest, ok := strings.CutPrefix(what, article); ok {
			return "the " + rest
		}
	}
	return what
}

func (d *decoder) mapping(w *formHeader, n *yaml.Node, what string,
	known []string) (map[string]*yaml.Node, bool) {
	if !d.checkNodeKind(n, yaml.MappingNode, what, "a map", "write its fields as name: value") {
		return nil, false
	}
	values := map[string]*yaml.Node{}
	w.node, w.keys, w.excused = n, map[string]*yaml.Node{}, map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.AliasNode || key.ShortTag() == "!!merge":
			d.failAt(CodeAlias, key, "aliases and merge keys are not supported", "write the fields out")
			for _, name := range known {
				w.excused[name] = true
			}
		case key.Kind != yaml.ScalarNode:
			d.failAt(CodeWrongType, key, "a field name must be text, not "+kindOf(key), fieldList(known))
		case !slices.Contains(known, key.Value):
			hint := didYouMean(key.Value, known, fieldList(known))
			d.failAt(CodeUnknownField, key, fmt.Sprintf("unknown field %q", key.Value), hint)
			w.excused[Nearest(key.Value, known)] = true
		case w.keys[key.Value] != nil:
			message := fmt.Sprintf("%q is already set at %s", key.Value, d.file.PlaceOf(w.keys[key.Value]))
			d.failAt(CodeDuplicateKey, key, message, "keep one of them")
		default:
			w.keys[key.Value], values[key.Value] = key, value
		}
	}
	return values, true
}

func fieldList(known []string) string {
	return "the fields here are " + strings.Join(known, ", ")
}

// didYouMean returns the hint for a word that is not one of the candidates.
func didYouMean(word string, candidates []string, otherwise string) string {
	if near := Nearest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

func (d *decoder) checkNodeKind(n *yaml.Node, kind yaml.Kind, what, wanted, hint string) bool {
	switch n.Kind {
	case yaml.AliasNode:
		d.failAt(CodeAlias, n, "aliases are not supported",
			"write the value out, or quote it when it is text")
	case kind:
		return true
	default:
		d.reportWrongKind(n, what, wanted, hint)
	}
	return false
}

func (d *decoder) reportWrongKind(n *yaml.Node, what, wanted, hint string) {
	d.failAt(CodeWrongType, n, fmt.Sprintf("%s must be %s, not %s", what, wanted, kindOf(n)), hint)
}

// list decodes a list that must not be empty.
func (d *decoder) list(n *yaml.Node, what, hint string) ([]*yaml.Node, bool) {
	if !d.checkNodeKind(n, yaml.SequenceNode, what, "a list", hint) {
		return nil, false
	}
	if len(n.Content) == 0 {
		d.failAt(CodeEmpty, n, what+" is empty", hint)
	}
	return n.Content, len(n.Content) > 0
}

// text decodes a text that must not be empty. A number or boolean is not accepted as text: "version: 1.10" is
// ambiguous.
func (d *decoder) text(n *yaml.Node, what, hint string) (string, bool) {
	if !d.checkNodeKind(n, yaml.ScalarNode, what, "text", hint) {
		return "", false
	}
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		d.reportWrongKind(n, what, "text", hint)
	case tag != "!!str":
		d.reportWrongKind(n, what, "text", fmt.Sprintf("put quotes around it: %q", n.Value))
	case strings.TrimSpace(n.Value) == "":
		d.failAt(CodeEmpty, n, what+" is empty", hint)
	default:
		return n.Value, true
	}
	return "", false
}

// textOrEmpty decodes a text, which can be empty if allowed.
func (d *decoder) textOrEmpty(n *yaml.Node, what, hint string, empty bool) (string, bool) {
	if empty && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == "" {
		return "", true
	}
	return d.text(n, what, hint)
}

func (d *decoder) choice(n *yaml.Node, what string, words ...string) (string, bool) {
	hint := "use one of " + strings.Join(words, ", ")
	if len(words) == 1 {
		hint = "use " + words[0]
	}
	return d.choiceOr(hint, n, what, words...)
}

// choiceOr is choice with a hint, for fields that also accept other values.
func (d *decoder) choiceOr(hint string, n *yaml.Node, what string, words ...string) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!str" && !isNull(n) {
		d.failAt(CodeUnknownValue, n, fmt.Sprintf("%s cannot be %s", what, n.Value), hint)
		return "", false
	}
	s, ok := d.text(n, what, hint)
	if ok && !slices.Contains(words, s) {
		d.failAt(CodeUnknownValue, n, fmt.Sprintf("%s cannot be %q", what, s), didYouMean(s, words, hint))
		return "", false
	}
	return s, ok
}

// number decodes an integer within bounds.
func (d *decoder) number(n *yaml.Node, what string, within numberRange) (int, bool) {
	least, most := within.min, within.max
	hint := fmt.Sprintf("use an integer from %d to %d", least, most)
	if !d.checkNodeKind(n, yaml.ScalarNode, what, "an integer", hint) {
		return 0, false
	}
	if n.ShortTag() != "!!int" {
		d.reportWrongKind(n, what, "an integer", hint)
		return 0, false
	}
	i, err := strconv.Atoi(n.Value)
	if err != nil || i < least || i > most {
		d.failAt(CodeOutOfRange, n, fmt.Sprintf("%s cannot be %s", what, n.Value), hint)
		return 0, false
	}
	return i, true
}

// boolean decodes true or false.
func (d *decoder) boolean(n *yaml.Node, what string) bool {
	if !d.checkNodeKind(n, yaml.ScalarNode, what, "true or false", "write true or false") {
		return false
	}
	if n.ShortTag() != "!!bool" {
		d.reportWrongKind(n, what, "true or false", "write true or false, without quotes")
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// kindOf describes a node in messages.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!str":
		return "text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a boolean"
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "a date"
	}
	return "a value with the tag " + n.ShortTag()
}
