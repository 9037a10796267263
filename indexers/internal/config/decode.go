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
	d.fail(code, d.file.PositionOf(n), message, hint)
}

// definiteArticle replaces the indefinite article: "an index" becomes "the index".
func definiteArticle(noun string) string {
	for _, article := range []string{"a ", "an "} {
		if rest, ok := strings.CutPrefix(noun, article); ok {
			return "the " + rest
		}
	}
	return noun
}

func (d *decoder) decodeMapping(w *formHeader, n *yaml.Node, noun string,
	allowed []string) (map[string]*yaml.Node, bool) {
	if !d.checkNodeKind(n, yaml.MappingNode, noun, "a map", "write its fields as name: value") {
		return nil, false
	}
	values := map[string]*yaml.Node{}
	w.node, w.keys, w.excusedFields = n, map[string]*yaml.Node{}, map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.AliasNode || key.ShortTag() == "!!merge":
			d.failAt(CodeAlias, key, "aliases and merge keys are not supported", "write the fields out")
			for _, name := range allowed {
				w.excusedFields[name] = true
			}
		case key.Kind != yaml.ScalarNode:
			d.failAt(CodeWrongType, key, "a field name must be text, not "+kindOf(key), fieldList(allowed))
		case !slices.Contains(allowed, key.Value):
			hint, isRemoved := removedFields[noun+" "+key.Value]
			if !isRemoved {
				hint = didYouMean(key.Value, allowed, fieldList(allowed))
			}
			d.failAt(CodeUnknownField, key, fmt.Sprintf("unknown field %q", key.Value), hint)
			for _, name := range allowed {
				w.excusedFields[name] = w.excusedFields[name] || isRemoved
			}
			w.excusedFields[NearestSpelling(key.Value, allowed)] = true
		case w.keys[key.Value] != nil:
			message := fmt.Sprintf("%q is already set at %s", key.Value, d.file.PositionOf(w.keys[key.Value]))
			d.failAt(CodeDuplicateKey, key, message, "keep one of them")
		default:
			w.keys[key.Value], values[key.Value] = key, value
		}
	}
	return values, true
}

func fieldList(allowed []string) string {
	return "the fields here are " + strings.Join(allowed, ", ")
}

// didYouMean returns the hint for a word that is not one of the candidates.
func didYouMean(word string, candidates []string, fallback string) string {
	if suggestion := NearestSpelling(word, candidates); suggestion != "" {
		return fmt.Sprintf("did you mean %q?", suggestion)
	}
	return fallback
}

func (d *decoder) checkNodeKind(n *yaml.Node, kind yaml.Kind, noun, expected, hint string) bool {
	switch n.Kind {
	case yaml.AliasNode:
		d.failAt(CodeAlias, n, "aliases are not supported",
			"write the value out, or quote it when it is text")
	case kind:
		return true
	default:
		d.reportWrongKind(n, noun, expected, hint)
	}
	return false
}

func (d *decoder) reportWrongKind(n *yaml.Node, noun, expected, hint string) {
	d.failAt(CodeWrongType, n, fmt.Sprintf("%s must be %s, not %s", noun, expected, kindOf(n)), hint)
}

// decodeList decodes a list that must not be empty.
func (d *decoder) decodeList(n *yaml.Node, noun, hint string) ([]*yaml.Node, bool) {
	if !d.checkNodeKind(n, yaml.SequenceNode, noun, "a list", hint) {
		return nil, false
	}
	if len(n.Content) == 0 {
		d.failAt(CodeEmpty, n, noun+" is empty", hint)
	}
	return n.Content, len(n.Content) > 0
}

// decodeText decodes a text that must not be empty. A number or boolean is not accepted as text: "version:
// 1.10" is ambiguous.
func (d *decoder) decodeText(n *yaml.Node, noun, hint string) (string, bool) {
	if !d.checkNodeKind(n, yaml.ScalarNode, noun, "text", hint) {
		return "", false
	}
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		d.reportWrongKind(n, noun, "text", hint)
	case tag != "!!str":
		d.reportWrongKind(n, noun, "text", fmt.Sprintf("put quotes around it: %q", n.Value))
	case strings.TrimSpace(n.Value) == "":
		d.failAt(CodeEmpty, n, noun+" is empty", hint)
	default:
		return n.Value, true
	}
	return "", false
}

// decodeOptionalText decodes a text, which may be empty if allowEmpty is true.
func (d *decoder) decodeOptionalText(n *yaml.Node, noun, hint string, allowEmpty bool) (string, bool) {
	if allowEmpty && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == "" {
		return "", true
	}
	return d.decodeText(n, noun, hint)
}

func (d *decoder) decodeChoice(n *yaml.Node, noun string, words ...string) (string, bool) {
	hint := "use one of " + strings.Join(words, ", ")
	if len(words) == 1 {
		hint = "use " + words[0]
	}
	return d.decodeChoiceOr(hint, n, noun, words...)
}

// decodeChoiceOr is decodeChoice with a hint, for fields that also accept other values.
func (d *decoder) decodeChoiceOr(hint string, n *yaml.Node, noun string, words ...string) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!str" && !isNull(n) {
		d.failAt(CodeUnknownValue, n, fmt.Sprintf("%s cannot be %s", noun, n.Value), hint)
		return "", false
	}
	s, ok := d.decodeText(n, noun, hint)
	if ok && !slices.Contains(words, s) {
		d.failAt(CodeUnknownValue, n, fmt.Sprintf("%s cannot be %q", noun, s), didYouMean(s, words, hint))
		return "", false
	}
	return s, ok
}

func (d *decoder) decodeNumber(n *yaml.Node, noun string, within numberRange) (int, bool) {
	least, most := within.min, within.max
	hint := fmt.Sprintf("use an integer from %d to %d", least, most)
	if !d.checkNodeKind(n, yaml.ScalarNode, noun, "an integer", hint) {
		return 0, false
	}
	if n.ShortTag() != "!!int" {
		d.reportWrongKind(n, noun, "an integer", hint)
		return 0, false
	}
	i, err := strconv.Atoi(n.Value)
	if err != nil || i < least || i > most {
		d.failAt(CodeOutOfRange, n, fmt.Sprintf("%s cannot be %s", noun, n.Value), hint)
		return 0, false
	}
	return i, true
}

func (d *decoder) decodeBool(n *yaml.Node, noun string) bool {
	if !d.checkNodeKind(n, yaml.ScalarNode, noun, "true or false", "write true or false") {
		return false
	}
	if n.ShortTag() != "!!bool" {
		d.reportWrongKind(n, noun, "true or false", "write true or false, without quotes")
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
