package indexers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/internal/naming"
)

// decoder decodes one document. Its methods report errors and continue, so that all errors are found
// together; ok is false if there is no usable result.
type decoder struct {
	*loader
	file     *sourceFile
	config   string // metadata.name
	defaults defaults
}

func (d *decoder) fail(code Code, at position, message, hint string) {
	d.report(d.file.finding(code, at, message, hint))
}

// failAt reports a finding about a whole node.
func (d *decoder) failAt(code Code, n *yaml.Node, message, hint string) {
	d.fail(code, d.file.positionOf(n), message, hint)
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

func (d *decoder) decodeMapping(header *formHeader, n *yaml.Node, noun string,
	allowed []string) (map[string]*yaml.Node, bool) {
	hint := "write its fields as name: value; " + fieldList(allowed)
	if !d.checkNodeKind(n, yaml.MappingNode, noun, "a map", hint) {
		return nil, false
	}
	values := map[string]*yaml.Node{}
	header.node, header.keys, header.excusedFields = n, map[string]*yaml.Node{}, map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.AliasNode || key.ShortTag() == "!!merge":
			d.failAt(codeAlias, key, "aliases and merge keys are not supported", "write the fields out")
			for _, name := range allowed {
				header.excusedFields[name] = true
			}
		case key.Kind != yaml.ScalarNode:
			d.failAt(codeWrongType, key, "a field name must be text, not "+kindOf(key), fieldList(allowed))
		case !slices.Contains(allowed, key.Value):
			d.failAt(codeUnknownField, key, fmt.Sprintf("unknown field %q", key.Value),
				didYouMean(key.Value, allowed, fieldList(allowed)))
			header.excusedFields[nearestSpelling(key.Value, allowed)] = true
		case header.keys[key.Value] != nil:
			message := fmt.Sprintf("%q is already set at %s", key.Value, d.file.positionOf(header.keys[key.Value]))
			d.failAt(codeDuplicateKey, key, message, "keep one of them")
		case !isNull(value): // null is unset
			header.keys[key.Value], values[key.Value] = key, value
		}
	}
	return values, true
}

func fieldList(allowed []string) string { return "the fields here are " + strings.Join(allowed, ", ") }

// didYouMean returns the hint for a word that is not one of the candidates.
func didYouMean(word string, candidates []string, fallback string) string {
	if suggestion := nearestSpelling(word, candidates); suggestion != "" {
		return fmt.Sprintf("did you mean %q?", suggestion)
	}
	return fallback
}

func (d *decoder) checkNodeKind(n *yaml.Node, kind yaml.Kind, noun, expected, hint string) bool {
	switch n.Kind {
	case yaml.AliasNode:
		d.failAt(codeAlias, n, "aliases are not supported",
			"write the value out, or quote it when it is text")
	case kind:
		return true
	default:
		d.reportWrongKind(n, noun, expected, hint)
	}
	return false
}

func (d *decoder) reportWrongKind(n *yaml.Node, noun, expected, hint string) {
	d.failAt(codeWrongType, n, fmt.Sprintf("%s must be %s, not %s", noun, expected, kindOf(n)), hint)
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
		d.failAt(codeEmpty, n, noun+" is empty", hint)
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

// decodeChoice decodes one of several words. If hint is empty, the error lists them.
func (d *decoder) decodeChoice(n *yaml.Node, noun, hint string, words []string) (string, bool) {
	hint = cmp.Or(hint, "use one of "+strings.Join(words, ", "))
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!str" && !isNull(n) {
		d.failAt(codeUnknownValue, n, fmt.Sprintf("%s cannot be %s", noun, n.Value), hint)
		return "", false
	}
	s, ok := d.decodeText(n, noun, hint)
	if !ok || slices.Contains(words, s) {
		return s, ok
	}
	if word := wordOf(s, words); word != "" {
		hint = "use " + word
	} else {
		hint = didYouMean(s, words, hint)
	}
	d.failAt(codeUnknownValue, n, fmt.Sprintf("%s cannot be %q", noun, s), hint)
	return "", false
}

// wordOf returns the word that differs from a text in case only, or "".
func wordOf(text string, words []string) string {
	word, _ := naming.Find(words, func(word string) bool { return strings.EqualFold(word, text) })
	return word
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

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

// nearestSpelling returns the candidate that word is probably a misspelling of, or "". Candidates that differ
// only in case come first.
func nearestSpelling(word string, candidates []string) string {
	if word := wordOf(synonyms[strings.ToLower(word)], candidates); word != "" {
		return word
	}
	best, bestDistance := "", max(len(word)/3, 1)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if strings.EqualFold(word, c) {
			return c
		}
		if d := naming.EditDistance(strings.ToLower(word), strings.ToLower(c), bestDistance-1); d >= 0 {
			best, bestDistance = c, d
		}
	}
	return best
}

// synonyms maps words of other tools to ours.
var synonyms = map[string]string{
	"jsonpath": "path", "field": "path", "fieldpath": "path", "expression": "path", "expr": "path",
	"integer": "int", "int32": "int", "int64": "int", "boolean": "bool",
	"float": "number", "float64": "number", "double": "number", "decimal": "number",
	"timestamp": "time", "datetime": "time", "date-time": "time", "text": "string", "version": "semver",
	"ipv4": "ip", "ipv6": "ip", "address": "ip", "subnet": "cidr", "fallbacks": "paths",
	"condition": "when", "filter": "when", "if": "when", "keys": "key", "refs": "references",
	"indices": "indexes",
	"name":    "namepath", "apiversion": "apiversionpath",
}
