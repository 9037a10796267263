package print

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// yamlWriter writes a valid JSON document as sigs.k8s.io/yaml would, without decoding it. It supports keys
// that JSON and YAML sort equally, integers, and plain text. It calls sigs.k8s.io/yaml for strings that can
// need quotes.
type yamlWriter struct {
	raw           []byte
	pos           int
	out           []byte
	lineStart     int // offset in out at which the current line starts
	needsDecoding bool
	quotes        quoteCache
}

// quoteCache maps strings to the output of sigs.k8s.io/yaml.
type quoteCache map[string]string

const maxCachedQuotes = 4096

// appendYAMLItem appends raw as a list item without indentation. It returns false, and dst unchanged, if raw
// must be decoded.
func appendYAMLItem(dst, raw []byte, cache quoteCache) ([]byte, bool) {
	w := yamlWriter{raw: raw, out: dst, lineStart: len(dst), quotes: cache}
	w.write("- ")
	w.writeNode(2, true)
	w.skipSpace()
	if w.needsDecoding || w.pos != len(raw) {
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

func (w *yamlWriter) skipSpace() byte {
	if w.pos = jsontext.SkipSpace(w.raw, w.pos); w.pos < len(w.raw) {
		return w.raw[w.pos]
	}
	return 0
}

func (w *yamlWriter) consume(c byte) bool {
	if w.needsDecoding || w.skipSpace() != c {
		return false
	}
	w.pos++
	return true
}

const maxYAMLDepth = 1000

// writeNode writes the next value as the content of a list item after its dash. indent is the column of the
// content. It ends the line.
func (w *yamlWriter) writeNode(indent int, inItem bool) {
	if w.needsDecoding || indent > 2*maxYAMLDepth {
		w.needsDecoding = true
		return
	}
	switch w.skipSpace() {
	case '{':
		w.writeMapping(indent, inItem)
	case '[':
		w.writeSequence(indent, inItem)
	default:
		w.writeScalar(indent)
		w.writeNewline()
	}
}

// writeMapping writes a map. In a list item the first key follows the dash.
func (w *yamlWriter) writeMapping(indent int, inItem bool) {
	w.pos++
	if w.consume('}') {
		w.write("{}")
		w.writeNewline()
		return
	}
	var previous []byte
	for first := true; ; first = false {
		key, ok := w.readPlainString()
		if !ok || !first && !sortsBeforeInBoth(previous, key) {
			w.needsDecoding = true
			return
		}
		previous = key
		if !first || !inItem {
			w.writeIndent(indent)
		}
		if w.writeString(key); !w.consume(':') || len(w.out)-w.lineStart > maxSimpleKeyLength {
			w.needsDecoding = true
			return
		}
		w.write(":")
		w.writeValue(indent)
		if w.needsDecoding || !w.consume(',') {
			break
		}
	}
	w.needsDecoding = w.needsDecoding || !w.consume('}')
}

// maxSimpleKeyLength is less than the length from which YAML writes keys differently.
const maxSimpleKeyLength = 100

// writeValue writes the value of a map key at indent.
func (w *yamlWriter) writeValue(indent int) {
	switch w.skipSpace() {
	case '{', '[':
		if w.isEmptyNext() {
			w.write(" ")
			w.writeNode(indent+2, true)
			return
		}
		w.writeNewline()
		if w.raw[w.pos] == '[' {
			w.writeNode(indent, false)
		} else {
			w.writeNode(indent+2, false)
		}
	default:
		w.write(" ")
		w.writeScalar(indent + 2)
		w.writeNewline()
	}
}

func (w *yamlWriter) isEmptyNext() bool {
	next := jsontext.SkipSpace(w.raw, w.pos+1)
	return next < len(w.raw) && (w.raw[next] == '}' || w.raw[next] == ']')
}

// writeSequence writes a list with the dashes at indent.
func (w *yamlWriter) writeSequence(indent int, inItem bool) {
	w.pos++
	if w.consume(']') {
		w.write("[]")
		w.writeNewline()
		return
	}
	for first := true; !w.needsDecoding; first = false {
		if !first || !inItem {
			w.writeIndent(indent)
		}
		w.write("- ")
		w.writeNode(indent+2, true)
		if !w.consume(',') {
			break
		}
	}
	w.needsDecoding = w.needsDecoding || !w.consume(']')
}

// writeScalar writes a string, number or word. Long text continues at indent.
func (w *yamlWriter) writeScalar(indent int) {
	start := w.pos
	if w.pos < len(w.raw) && w.raw[w.pos] == '"' {
		text, ok := w.readPlainString()
		if !ok {
			w.needsDecoding = true
			return
		}
		if needsNoQuotes(text) {
			w.writeFolded(text, indent)
			return
		}
		w.writeString(text)
		return
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if end := jsontext.ScanLiteral(w.raw, start, word); end >= 0 {
			w.out, w.pos = append(w.out, word...), end
			return
		}
	}
	end, numberForm := jsontext.ScanNumber(w.raw, start)
	if end < 0 || numberForm != jsontext.Integer || end-start > maxSafeIntegerLength ||
		string(w.raw[start:end]) == "-0" {
		w.needsDecoding = true
		return
	}
	w.out, w.pos = append(w.out, w.raw[start:end]...), end
}

// maxSafeIntegerLength is the number of characters up to which every integer fits int64.
const maxSafeIntegerLength = 18

// readPlainString reads a string of plain ASCII without escapes, or returns false.
func (w *yamlWriter) readPlainString() ([]byte, bool) {
	if w.skipSpace() != '"' {
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

const deleteCharacter = 0x7f

func needsNoQuotes(text []byte) bool {
	if len(text) < minPlainLength || !isLetter(text[0]) || text[len(text)-1] == ' ' ||
		text[len(text)-1] == ':' {
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
	return len(text) > maxWordLength || !slices.Contains(yamlWords, strings.ToLower(string(text)))
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
func (w *yamlWriter) writeFolded(text []byte, indent int) {
	if len(w.out)-w.lineStart+len(text) <= foldColumn {
		w.out = append(w.out, text...)
		return
	}
	for _, c := range text {
		if c == ' ' && len(w.out)-w.lineStart > foldColumn {
			w.writeNewline()
			w.writeIndent(indent)
			continue
		}
		w.out = append(w.out, c)
	}
}

// writeString writes a key or a value, with quotes if necessary.
func (w *yamlWriter) writeString(text []byte) {
	switch {
	case needsNoQuotes(text):
		w.out = append(w.out, text...)
		return
	case isTimestamp(text):
		w.out = append(w.out, '"')
		w.out = append(w.out, text...)
		w.out = append(w.out, '"')
		return
	case len(w.out)-w.lineStart+2*len(text) > foldColumn && bytes.IndexByte(text, ' ') >= 0:
		w.needsDecoding = true // its folding depends on the quotes
		return
	}
	if quoted, ok := w.quote(text); ok {
		w.write(quoted)
		return
	}
	w.needsDecoding = true
}

// quote returns the output of sigs.k8s.io/yaml for a string, or false if the output has several lines.
func (w *yamlWriter) quote(text []byte) (string, bool) {
	if cached, ok := w.quotes[string(text)]; ok {
		return cached, true
	}
	marshalled, err := yaml.Marshal(string(text))
	if err != nil || bytes.IndexByte(marshalled, '\n') != len(marshalled)-1 {
		return "", false
	}
	quoted := string(marshalled[:len(marshalled)-1])
	if len(w.quotes) < maxCachedQuotes {
		w.quotes[string(text)] = quoted
	}
	return quoted, true
}

// isTimestamp reports whether text is a Kubernetes timestamp, which the library quotes.
func isTimestamp(text []byte) bool {
	const layout = "0000-00-00T00:00:00Z"
	if len(text) != len(layout) {
		return false
	}
	for i, c := range text {
		if isDigit := '0' <= c && c <= '9'; isDigit != (layout[i] == '0') || !isDigit && c != layout[i] {
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
		isPunctuation := func(c byte) bool { return c == '.' || c == '/' || c == '-' }
		al, bl := isLetter(a[i]), isLetter(b[i])
		as, bs := isPunctuation(a[i]), isPunctuation(b[i])
		digitThenLetter := '0' <= a[i] && a[i] <= '9' && bl
		return a[i] < b[i] && ((al || as) && (bl || bs) || digitThenLetter)
	}
	return len(a) < len(b)
}
