package print

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// indenter writes a JSON document, known to be valid, as json.MarshalIndent writes what decoding it gives. It does
// so without decoding where the document is as API servers write them: keys in order, none twice.
type indenter struct {
	raw    []byte
	at     int
	out    []byte
	prefix string
	step   string
	depth  int
	// broken is set when the document has to be decoded after all.
	broken bool
}

// appendIndented appends raw, or returns false (and dst as it was) when it has to be decoded for that.
func appendIndented(dst, raw []byte, prefix, step string) ([]byte, bool) {
	f := indenter{raw: raw, out: dst, prefix: prefix, step: step}
	f.value()
	f.space()
	if f.broken || f.at != len(raw) {
		return dst, false
	}
	return f.out, true
}

// space skips white space and returns the byte after it; 0 at the end.
func (f *indenter) space() byte {
	if f.at = jsontext.Space(f.raw, f.at); f.at < len(f.raw) {
		return f.raw[f.at]
	}
	return 0
}

func (f *indenter) newline() {
	f.out = append(f.out, '\n')
	f.out = append(f.out, f.prefix...)
	for range f.depth {
		f.out = append(f.out, f.step...)
	}
}

// maxDepth is far beyond what API servers accept, and keeps the recursion small.
const maxDepth = 1000

func (f *indenter) value() {
	if f.depth > maxDepth {
		f.broken = true
	}
	if f.broken {
		return
	}
	switch c := f.space(); c {
	case '{':
		f.object()
	case '[':
		f.array()
	case '"':
		if text, ok := f.text(); ok {
			f.out = append(f.out, text...)
		}
	case 't', 'f', 'n':
		f.word()
	default:
		f.number()
	}
}

func (f *indenter) object() {
	f.at++
	f.out = append(f.out, '{')
	if f.space() == '}' {
		f.at++
		f.out = append(f.out, '}')
		return
	}
	f.depth++
	var previous []byte
	for first := true; !f.broken; first = false {
		if f.space() != '"' {
			f.broken = true
			return
		}
		key, ok := f.text()
		if !ok {
			return
		}
		decoded := quotedKey(key)
		if !first && bytes.Compare(decoded, previous) <= 0 {
			f.broken = true
			return
		}
		previous = decoded
		f.newline()
		f.out = append(f.out, key...)
		if f.space() != ':' {
			f.broken = true
			return
		}
		f.at++
		f.out = append(f.out, ':', ' ')
		f.value()
		if !f.next('}') {
			return
		}
	}
}

// quotedKey decodes a key in the form that text returns.
func quotedKey(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	return jsontext.AppendText(nil, inner)
}

func (f *indenter) array() {
	f.at++
	f.out = append(f.out, '[')
	if f.space() == ']' {
		f.at++
		f.out = append(f.out, ']')
		return
	}
	f.depth++
	for !f.broken {
		f.newline()
		f.value()
		if !f.next(']') {
			return
		}
	}
}

// next reads what follows an element: a comma, after which there is another, or the end.
func (f *indenter) next(end byte) bool {
	if f.broken {
		return false
	}
	switch f.space() {
	case ',':
		f.at++
		f.out = append(f.out, ',')
		return true
	case end:
		f.at++
		f.depth--
		f.newline()
		f.out = append(f.out, end)
	default:
		f.broken = true
	}
	return false
}

// text reads a string and returns it as the encoder of Go writes it, quotes included.
func (f *indenter) text() ([]byte, bool) {
	start := f.at
	end, encoded := jsontext.EncodedText(f.raw, start+1)
	if end < 0 {
		f.broken = true
		return nil, false
	}
	f.at = end
	quoted := f.raw[start:end]
	if encoded {
		return f.rewritten(quoted)
	}
	for _, c := range quoted {
		if rewrites[c] {
			return f.rewritten(quoted)
		}
	}
	return quoted, true
}

// rewrites are the bytes of strings that the encoder of Go may write in another way.
var rewrites = func() (table [256]bool) {
	for _, c := range "<>&\x7f" {
		table[c] = true
	}
	for c := utf8.RuneSelf; c < len(table); c++ {
		table[c] = true
	}
	return table
}()

// rewritten decodes and encodes a string that may be written differently.
func (f *indenter) rewritten(quoted []byte) ([]byte, bool) {
	encoded, err := json.Marshal(string(jsontext.AppendText(nil, quoted[1:len(quoted)-1])))
	if err != nil {
		f.broken = true
		return nil, false
	}
	return encoded, true
}

// jsonWords are the values without a form of their own.
var jsonWords = [][]byte{[]byte("true"), []byte("false"), []byte("null")}

func (f *indenter) word() {
	for _, word := range jsonWords {
		if bytes.HasPrefix(f.raw[f.at:], word) {
			f.out = append(f.out, word...)
			f.at += len(word)
			return
		}
	}
	f.broken = true
}

// number writes a number as the encoder of Go writes the int64 or float64 that it is decoded to.
func (f *indenter) number() {
	end, _ := jsontext.Number(f.raw, f.at)
	if end < 0 {
		f.broken = true
		return
	}
	text := f.raw[f.at:end]
	f.at = end
	i, n, isInteger, ok := jsontext.ParseNumber(text)
	switch {
	case !ok:
		f.broken = true
		return
	case isInteger:
		f.out = strconv.AppendInt(f.out, i, 10)
		return
	}
	encoded, err := json.Marshal(n)
	if err != nil {
		f.broken = true
		return
	}
	f.out = append(f.out, encoded...)
}
