package print

import (
	"bytes"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// yamlWriter writes a valid JSON document as sigs.k8s.io/yaml would, without decoding it. It supports keys
// that JSON and YAML sort equally, integers, and plain text. For strings that can need quotes it calls the
// library.
type yamlWriter struct {
	raw    []byte
	pos    int
	out    []byte
	line   int // offset in out at which the current line starts
	broken bool
	quotes quoteCache
}

// quoteCache caches the library's output for strings.
type quoteCache map[string]string

// maxQuotes bounds the cache.
const maxQuotes = 4096

// appendYAMLItem appends raw as a list item without indentation. It returns false, and dst unchanged, if raw
// must be decoded.
func appendYAMLItem(dst, raw []byte, cache quoteCache) ([]byte, bool) {
	w := yamlWriter{raw: raw, out: dst, line: len(dst), quotes: cache}
	w.write("- ")
	w.node(2, true)
	w.space()
	if w.broken || w.pos != len(raw) {
		return dst, false
	}
	return w.out, true
}

func (w *yamlWriter) write(text string) { w.out = append(w.out, text...) }

func (w *yamlWriter) newline() {
	w.out = append(w.out, '\n')
	w.line = len(w.out)
}

func (w *yamlWriter) indent(columns int) {
	for range columns {
		w.out = append(w.out, ' ')
	}
}

func (w *yamlWriter) space() byte {
	if w.pos = jsontext.SkipSpace(w.raw, w.pos); w.pos < len(w.raw) {
		return w.raw[w.pos]
	}
	return 0
}

func (w *yamlWriter) consume(c byte) bool {
	if w.broken || w.space() != c {
		return false
	}
	w.pos++
	return true
}

// maxDepth bounds the recursion far above the API server's limit.
const maxDepth = 1000

// node writes the next value as the content of a list item after its dash. indent is the column of the
// content. It ends the line.
func (w *yamlWriter) node(indent int, inItem bool) {
	if w.broken || indent > 2*maxDepth {
		w.broken = true
		return
	}
	switch w.space() {
	case '{':
		w.mapping(indent, inItem)
	case '[':
		w.sequence(indent, inItem)
	default:
		w.scalar(indent)
		w.newline()
	}
}

// mapping writes a map. In a list item the first key follows the dash.
func (w *yamlWriter) mapping(indent int, inItem bool) {
	w.pos++
	if w.consume('}') {
		w.write("{}")
		w.newline()
		return
	}
	var previous []byte
	for first := true; ; first = false {
		key, ok := w.text()
		if !ok || !first && !sortsBeforeInBoth(previous, key) {
			w.broken = true
			return
		}
		previous = key
		if !first || !inItem {
			w.indent(indent)
		}
		if w.string(key); !w.consume(':') || len(w.out)-w.line > maxSimpleKey {
			w.broken = true
			return
		}
		w.write(":")
		w.value(indent)
		if w.broken || !w.consume(',') {
			break
		}
	}
	w.broken = w.broken || !w.consume('}')
}

// maxSimpleKey is below the length from which YAML writes keys differently.
const maxSimpleKey = 100

// value writes the value of a map key at indent.
func (w *yamlWriter) value(indent int) {
	switch w.space() {
	case '{', '[':
		if w.isEmptyNext() {
			w.write(" ")
			w.node(indent+2, true)
			return
		}
		w.newline()
		if w.raw[w.pos] == '[' {
			w.node(indent, false)
		} else {
			w.node(indent+2, false)
		}
	default:
		w.write(" ")
		w.scalar(indent + 2)
		w.newline()
	}
}

// isEmptyNext reports whether the next map or list is empty.
func (w *yamlWriter) isEmptyNext() bool {
	next := jsontext.SkipSpace(w.raw, w.pos+1)
	return next < len(w.raw) && (w.raw[next] == '}' || w.raw[next] == ']')
}

// sequence writes a list with the dashes at indent.
func (w *yamlWriter) sequence(indent int, inItem bool) {
	w.pos++
	if w.consume(']') {
		w.write("[]")
		w.newline()
		return
	}
	for first := true; !w.broken; first = false {
		if !first || !inItem {
			w.indent(indent)
		}
		w.write("- ")
		w.node(indent+2, true)
		if !w.consume(',') {
			break
		}
	}
	w.broken = w.broken || !w.consume(']')
}

// scalar writes a string, number or word. Long text continues at indent.
func (w *yamlWriter) scalar(indent int) {
	start := w.pos
	if w.pos < len(w.raw) && w.raw[w.pos] == '"' {
		text, ok := w.text()
		if !ok {
			w.broken = true
			return
		}
		if needsNoQuotes(text) {
			w.folded(text, indent)
			return
		}
		w.string(text)
		return
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if end := jsontext.ScanLiteral(w.raw, start, word); end >= 0 {
			w.out, w.pos = append(w.out, word...), end
			return
		}
	}
	end, numberForm := jsontext.ScanNumber(w.raw, start)
	if end < 0 || numberForm != jsontext.Integer || end-start > safeDigits || string(w.raw[start:end]) == "-0" {
		w.broken = true
		return
	}
	w.out, w.pos = append(w.out, w.raw[start:end]...), end
}

// safeDigits is the number of characters up to which an integer fits int64.
const safeDigits = 18

// text reads a string of plain ASCII without escapes, or returns false.
func (w *yamlWriter) text() ([]byte, bool) {
	if w.space() != '"' {
		return nil, false
	}
	start := w.pos + 1
	end, ok := jsontext.ScanPlain(w.raw, start)
	if !ok {
		return nil, false
	}
	w.pos = end
	text := w.raw[start : end-1]
	return text, bytes.IndexByte(text, deleteCharacter) < 0
}

// deleteCharacter is a control character that JSON does not escape.
const deleteCharacter = 0x7f

func needsNoQuotes(text []byte) bool {
	if len(text) < minPlain || !isLetter(text[0]) || text[len(text)-1] == ' ' || text[len(text)-1] == ':' {
		return false
	}
	for i, c := range text {
		switch {
		case isLetter(c), '0' <= c && c <= '9', c == '.', c == '/', c == '-', c == '_', c == ',':
		case c == ' ' && text[i+1] != ' ' && text[i+1] != '#':
		case c == ':' && text[i+1] != ' ':
		default:
			return false
		}
	}
	return len(text) > maxWord || !yamlWord(text)
}

const (
	// minPlain leaves short words such as y and n to the library.
	minPlain = 2
	// maxWord is the length of the longest YAML keyword.
	maxWord = len("false")
)

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// yamlWord reports whether YAML reads text as a boolean or null.
func yamlWord(text []byte) bool {
	switch strings.ToLower(string(text)) {
	case "yes", "no", "on", "off", "true", "false", "null", "y", "n":
		return true
	}
	return false
}

// bestWidth is the column after which plain text is folded.
const bestWidth = 80

// folded writes plain text and replaces a space by a line break in long lines.
func (w *yamlWriter) folded(text []byte, indent int) {
	if len(w.out)-w.line+len(text) <= bestWidth {
		w.out = append(w.out, text...)
		return
	}
	for _, c := range text {
		if c == ' ' && len(w.out)-w.line > bestWidth {
			w.newline()
			w.indent(indent)
			continue
		}
		w.out = append(w.out, c)
	}
}

// string writes a key, or a value that can need quotes.
func (w *yamlWriter) string(text []byte) {
	switch {
	case needsNoQuotes(text):
		w.out = append(w.out, text...)
		return
	case isTimestamp(text):
		w.out = append(w.out, '"')
		w.out = append(w.out, text...)
		w.out = append(w.out, '"')
		return
	case len(w.out)-w.line+2*len(text) > bestWidth && bytes.IndexByte(text, ' ') >= 0:
		w.broken = true // its folding depends on the quotes
		return
	}
	if quoted, ok := w.quoted(text); ok {
		w.write(quoted)
		return
	}
	w.broken = true
}

// quoted returns the library's output for a string, or false if it has several lines.
func (w *yamlWriter) quoted(text []byte) (string, bool) {
	if cached, ok := w.quotes[string(text)]; ok {
		return cached, true
	}
	marshalled, err := yaml.Marshal(string(text))
	if err != nil || bytes.IndexByte(marshalled, '\n') != len(marshalled)-1 {
		return "", false
	}
	quoted := string(marshalled[:len(marshalled)-1])
	if len(w.quotes) < maxQuotes {
		w.quotes[string(text)] = quoted
	}
	return quoted, true
}

// isTimestamp reports whether text is a Kubernetes timestamp, which the library quotes.
func isTimestamp(text []byte) bool {
	const form = "0000-00-00T00:00:00Z"
	if len(text) != len(form) {
		return false
	}
	for i, c := range text {
		if digit := '0' <= c && c <= '9'; digit != (form[i] == '0') || !digit && c != form[i] {
			return false
		}
	}
	_, err := time.Parse(time.RFC3339, string(text)) // rejects invalid dates, as the library does
	return err == nil
}

// sortsBeforeInBoth reports whether key a sorts before b in both JSON and YAML. YAML compares digits within
// keys as numbers.
func sortsBeforeInBoth(a, b []byte) bool {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		simple := func(c byte) bool { return c == '.' || c == '/' || c == '-' }
		al, bl := isLetter(a[i]), isLetter(b[i])
		as, bs := simple(a[i]), simple(b[i])
		digitThenLetter := '0' <= a[i] && a[i] <= '9' && bl
		return a[i] < b[i] && ((al || as) && (bl || bs) || digitThenLetter)
	}
	return len(a) < len(b)
}
