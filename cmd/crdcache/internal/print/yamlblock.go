package print

import (
	"bytes"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// yamlWriter writes a JSON document, known to be valid, as sigs.k8s.io/yaml writes what decoding it gives. It
// does so without decoding where that is simple: keys in an order that JSON and YAML agree on, none twice,
// integers, and text that fits on a line or folds at its spaces. For a string that may need quotes it asks
// the library.
type yamlWriter struct {
	raw    []byte
	at     int
	out    []byte
	line   int // where the line at hand begins in out
	broken bool
	quotes quotes
}

// quotes remembers how the library wrote strings, most of which come again and again.
type quotes map[string]string

// maxQuotes bounds the memory for that.
const maxQuotes = 4096

// appendYAMLItem appends raw as an item of a list at the margin, or returns false (and dst as it was) when it
// has to be decoded for that.
func appendYAMLItem(dst, raw []byte, known quotes) ([]byte, bool) {
	w := yamlWriter{raw: raw, out: dst, line: len(dst), quotes: known}
	w.write("- ")
	w.node(2, true)
	w.space()
	if w.broken || w.at != len(raw) {
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
	if w.at = jsontext.Space(w.raw, w.at); w.at < len(w.raw) {
		return w.raw[w.at]
	}
	return 0
}

func (w *yamlWriter) take(c byte) bool {
	if w.broken || w.space() != c {
		return false
	}
	w.at++
	return true
}

// maxDepth is far beyond what API servers accept, and keeps the recursion small.
const maxDepth = 1000

// node writes what is at hand as the content of an item, whose dash is written: indent is the column of its
// content. The line is ended.
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

// mapping writes a map; its first key goes on the line at hand when that is the line of an item's dash.
func (w *yamlWriter) mapping(indent int, inItem bool) {
	w.at++
	if w.take('}') {
		w.write("{}")
		w.newline()
		return
	}
	var previous []byte
	for first := true; ; first = false {
		key, ok := w.text()
		if !ok || !first && !inOrder(previous, key) {
			w.broken = true
			return
		}
		previous = key
		if !first || !inItem {
			w.indent(indent)
		}
		if w.string(key); !w.take(':') || len(w.out)-w.line > maxSimpleKey {
			w.broken = true
			return
		}
		w.write(":")
		w.value(indent)
		if w.broken || !w.take(',') {
			break
		}
	}
	w.broken = w.broken || !w.take('}')
}

// maxSimpleKey keeps away from the length at which keys are written in another way.
const maxSimpleKey = 100

// value writes the value of a key in a map at indent.
func (w *yamlWriter) value(indent int) {
	switch w.space() {
	case '{', '[':
		if w.emptyAhead() {
			w.write(" ")
			w.node(indent+2, true)
			return
		}
		w.newline()
		if w.raw[w.at] == '[' {
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

// emptyAhead reports whether the map or list at hand is empty.
func (w *yamlWriter) emptyAhead() bool {
	next := jsontext.Space(w.raw, w.at+1)
	return next < len(w.raw) && (w.raw[next] == '}' || w.raw[next] == ']')
}

// sequence writes a list whose dashes are at indent.
func (w *yamlWriter) sequence(indent int, inItem bool) {
	w.at++
	if w.take(']') {
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
		if !w.take(',') {
			break
		}
	}
	w.broken = w.broken || !w.take(']')
}

// scalar writes what is neither map nor list. Text that is too long continues at indent.
func (w *yamlWriter) scalar(indent int) {
	start := w.at
	if w.at < len(w.raw) && w.raw[w.at] == '"' {
		text, ok := w.text()
		if !ok {
			w.broken = true
			return
		}
		if plain(text) {
			w.folded(text, indent)
			return
		}
		w.string(text)
		return
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if end := jsontext.Word(w.raw, start, word); end >= 0 {
			w.out, w.at = append(w.out, word...), end
			return
		}
	}
	end, form := jsontext.Number(w.raw, start)
	if end < 0 || form != jsontext.Integer || end-start > safeDigits || string(w.raw[start:end]) == "-0" {
		w.broken = true
		return
	}
	w.out, w.at = append(w.out, w.raw[start:end]...), end
}

// safeDigits is how many characters a number may have to be an int64 for sure, which is written as it is.
const safeDigits = 18

// text reads a string, and refuses what is not plain ASCII without escapes.
func (w *yamlWriter) text() ([]byte, bool) {
	if w.space() != '"' {
		return nil, false
	}
	start := w.at + 1
	end, ok := jsontext.PlainText(w.raw, start)
	if !ok {
		return nil, false
	}
	w.at = end
	text := w.raw[start : end-1]
	return text, bytes.IndexByte(text, deleteCharacter) < 0
}

// deleteCharacter is a control character that JSON does not escape.
const deleteCharacter = 0x7f

// plain reports whether text needs no quotes for sure: it begins with a letter, is none of YAML's words, and
// has no character that means anything.
func plain(text []byte) bool {
	if len(text) < minPlain || !letter(text[0]) || text[len(text)-1] == ' ' || text[len(text)-1] == ':' {
		return false
	}
	for i, c := range text {
		switch {
		case letter(c), '0' <= c && c <= '9', c == '.', c == '/', c == '-', c == '_', c == ',':
		case c == ' ' && text[i+1] != ' ' && text[i+1] != '#':
		case c == ':' && text[i+1] != ' ':
		default:
			return false
		}
	}
	return len(text) > maxWord || !yamlWord(text)
}

const (
	// minPlain leaves y, n and other short words to the library.
	minPlain = 2
	// maxWord is the length of the longest word that means something in YAML.
	maxWord = len("false")
)

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// yamlWord reports whether text is read as a boolean or as null.
func yamlWord(text []byte) bool {
	switch strings.ToLower(string(text)) {
	case "yes", "no", "on", "off", "true", "false", "null", "y", "n":
		return true
	}
	return false
}

// bestWidth is the column after which plain text goes on at the next line.
const bestWidth = 80

// folded writes plain text, with a new line in place of a space where the line is too long.
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

// string writes a key, or a value that the library may put in quotes.
func (w *yamlWriter) string(text []byte) {
	switch {
	case plain(text):
		w.out = append(w.out, text...)
		return
	case timestamp(text):
		w.out = append(w.out, '"')
		w.out = append(w.out, text...)
		w.out = append(w.out, '"')
		return
	case len(w.out)-w.line+2*len(text) > bestWidth && bytes.IndexByte(text, ' ') >= 0:
		w.broken = true // it may be folded, in a way that depends on the quotes
		return
	}
	if quoted, ok := w.quoted(text); ok {
		w.write(quoted)
		return
	}
	w.broken = true
}

// quoted asks the library how it writes a string, and refuses what takes several lines.
func (w *yamlWriter) quoted(text []byte) (string, bool) {
	if known, ok := w.quotes[string(text)]; ok {
		return known, true
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

// timestamp reports whether text is a time as Kubernetes writes it, which the library puts in quotes.
func timestamp(text []byte) bool {
	const form = "0000-00-00T00:00:00Z"
	if len(text) != len(form) {
		return false
	}
	for i, c := range text {
		if digit := '0' <= c && c <= '9'; digit != (form[i] == '0') || !digit && c != form[i] {
			return false
		}
	}
	_, err := time.Parse(time.RFC3339, string(text)) // the library knows that there is no month 62
	return err == nil
}

// inOrder reports whether a key comes after another in JSON and in YAML, which compares numbers within keys.
func inOrder(a, b []byte) bool {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		simple := func(c byte) bool { return c == '.' || c == '/' || c == '-' }
		al, bl := letter(a[i]), letter(b[i])
		as, bs := simple(a[i]), simple(b[i])
		digitThenLetter := '0' <= a[i] && a[i] <= '9' && bl
		return a[i] < b[i] && ((al || as) && (bl || bs) || digitThenLetter)
	}
	return len(a) < len(b)
}
