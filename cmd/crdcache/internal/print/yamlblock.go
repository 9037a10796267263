package print

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// yamlWriter writes decoded JSON as sigs.k8s.io/yaml would. It supports keys that JSON and YAML sort equally,
// integers, and plain text. It calls sigs.k8s.io/yaml for strings that can need quotes.
type yamlWriter struct {
	out           []byte
	lineStart     int // offset in out at which the current line starts
	isUnsupported bool
	quotes        quoteCache
}

// quoteCache maps strings to the output of sigs.k8s.io/yaml.
type quoteCache map[string]string

const maxCachedQuotes = 4096

// appendYAMLItem appends a value as a list item without indentation. It returns false, and dst unchanged, if
// sigs.k8s.io/yaml must write the value.
func appendYAMLItem(dst []byte, value any, cache quoteCache) ([]byte, bool) {
	w := yamlWriter{out: dst, lineStart: len(dst), quotes: cache}
	w.write("- ")
	w.writeNode(value, 2, 2, true)
	if w.isUnsupported {
		return dst, false
	}
	return w.out, true
}

func (w *yamlWriter) write(text string) { w.out = append(w.out, text...) }

func (w *yamlWriter) writeNewline() {
	w.out = append(w.out, '\n')
	w.lineStart = len(w.out)
}

func (w *yamlWriter) writeIndent(columns int) {
	for range columns {
		w.out = append(w.out, ' ')
	}
}

// writeNode writes a value after the dash of a list item, or else after a map key, and ends the line. indent
// is the column of the content, except for the dashes of a list, which are at listIndent.
func (w *yamlWriter) writeNode(value any, indent, listIndent int, inItem bool) {
	object, _ := value.(map[string]any)
	list, _ := value.([]any)
	switch isNested := len(object)+len(list) > 0; {
	case inItem:
	case isNested:
		w.writeNewline()
	default:
		w.write(" ")
	}
	switch {
	case len(object) > 0:
		w.writeMapping(object, indent, inItem)
	case len(list) > 0:
		w.writeSequence(list, listIndent, inItem)
	default:
		w.writeScalar(value, indent)
		w.writeNewline()
	}
}

// maxSimpleKeyLength is less than the length from which YAML writes keys differently.
const maxSimpleKeyLength = 100

// writeMapping writes a map that is not empty. In a list item the first key follows the dash.
func (w *yamlWriter) writeMapping(object map[string]any, indent int, inItem bool) {
	previous := ""
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i > 0 || !inItem {
			w.writeIndent(indent)
		}
		w.writeString(key)
		if w.isUnsupported = w.isUnsupported || i > 0 && !sortsBeforeInBoth(previous, key) ||
			len(w.out)-w.lineStart > maxSimpleKeyLength; w.isUnsupported {
			return
		}
		w.write(":")
		w.writeNode(object[key], indent+2, indent, false)
		previous = key
	}
}

// writeSequence writes a list that is not empty, with the dashes at indent.
func (w *yamlWriter) writeSequence(list []any, indent int, inItem bool) {
	for i, element := range list {
		if i > 0 || !inItem {
			w.writeIndent(indent)
		}
		w.write("- ")
		if w.writeNode(element, indent+2, indent+2, true); w.isUnsupported {
			return
		}
	}
}

// writeScalar writes any other value. Long text continues at indent.
func (w *yamlWriter) writeScalar(value any, indent int) {
	switch v := value.(type) {
	case string:
		if needsNoQuotes(v) {
			w.writeFolded(v, indent)
		} else {
			w.writeString(v)
		}
	case int64, bool:
		w.out = fmt.Append(w.out, v)
	case nil:
		w.write("null")
	case map[string]any:
		w.write("{}")
	case []any:
		w.write("[]")
	default:
		w.isUnsupported = true
	}
}

func needsNoQuotes(text string) bool {
	if len(text) < minPlainLength || !isLetter(text[0]) || text[len(text)-1] == ' ' ||
		text[len(text)-1] == ':' {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case isLetter(c), '0' <= c && c <= '9', c == '.', c == '/', c == '-', c == '_', c == ',':
		case c == ' ' && text[i+1] != ' ' && text[i+1] != '#':
		case c == ':' && text[i+1] != ' ':
		default:
			return false
		}
	}
	return len(text) > maxWordLength || !slices.Contains(yamlWords, strings.ToLower(text))
}

const (
	// minPlainLength excludes words such as y and n, which can need quotes.
	minPlainLength = 2
	maxWordLength  = len("false")
)

var yamlWords = []string{"yes", "no", "on", "off", "true", "false", "null", "y", "n"}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// foldColumn is the column after which plain text is folded.
const foldColumn = 80

// writeFolded writes plain text and replaces a space by a line break in long lines.
func (w *yamlWriter) writeFolded(text string, indent int) {
	if len(w.out)-w.lineStart+len(text) <= foldColumn {
		w.write(text)
		return
	}
	for i := range len(text) {
		if text[i] == ' ' && len(w.out)-w.lineStart > foldColumn {
			w.writeNewline()
			w.writeIndent(indent)
			continue
		}
		w.out = append(w.out, text[i])
	}
}

// writeString writes a key or a value, with quotes if necessary. It supports ASCII without JSON escapes.
func (w *yamlWriter) writeString(text string) {
	isSpecial := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	switch {
	case needsNoQuotes(text):
		w.write(text)
	case isTimestamp(text):
		w.write(`"` + text + `"`)
	case strings.ContainsFunc(text, isSpecial),
		len(w.out)-w.lineStart+2*len(text) > foldColumn && strings.Contains(text, " "):
		w.isUnsupported = true // its folding depends on the quotes
	default:
		w.writeQuoted(text)
	}
}

// writeQuoted writes a string as sigs.k8s.io/yaml does, on one line.
func (w *yamlWriter) writeQuoted(text string) {
	quoted, ok := w.quotes[text]
	if !ok {
		marshalled, err := yaml.Marshal(text)
		isLine := false
		if quoted, isLine = strings.CutSuffix(string(marshalled), "\n"); err != nil || !isLine ||
			strings.Contains(quoted, "\n") {
			w.isUnsupported = true
			return
		}
		if len(w.quotes) < maxCachedQuotes {
			w.quotes[text] = quoted
		}
	}
	w.write(quoted)
}

// isTimestamp reports whether text is a Kubernetes timestamp, which the library quotes.
func isTimestamp(text string) bool {
	const layout = "2006-01-02T15:04:05Z"
	if len(text) != len(layout) {
		return false
	}
	_, err := time.Parse(layout, text) // rejects invalid dates, as the library does
	return err == nil
}

// sortsBeforeInBoth reports whether key a sorts before b in both JSON and YAML. YAML compares digits within
// keys as numbers.
func sortsBeforeInBoth(a, b string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		isPunctuation := func(c byte) bool { return c == '.' || c == '/' || c == '-' }
		al, bl := isLetter(a[i]), isLetter(b[i])
		as, bs := isPunctuation(a[i]), isPunctuation(b[i])
		digitThenLetter := '0' <= a[i] && a[i] <= '9' && bl
		return a[i] < b[i] && ((al || as) && (bl || bs) || digitThenLetter)
	}
	return len(a) < len(b)
}
