package indexers

import (
	"math"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Null is the value under which an index with "missing: null" holds objects without a value. No
// object has it otherwise: a text that consists of this one character is left out of indexes. Sorted
// indexes have it before everything but "".
const Null = "\x00"

// Value builds the value to look up in an index. One part stands for itself. Several parts, which are
// those of a composite index in the order of [Index.Keys], are joined by "/", with a backslash before
// each "/" and "\" within a part. So different parts always give different values:
//
//	Value("a", "b")   // a/b
//	Value("a/b", "c") // a\/b/c
//
// A part may be [Null]. No part at all gives "". Indexes that are sorted, or have types, hold keys of
// another form: [Index.Key] serves all of them.
func Value(parts ...string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('/')
		}
		appendPart(&b, p)
	}
	return b.String()
}

func appendPart(b *strings.Builder, p string) {
	for {
		i := strings.IndexAny(p, `/\`)
		if i < 0 {
			b.WriteString(p)
			return
		}
		b.WriteString(p[:i])
		b.WriteByte('\\')
		b.WriteByte(p[i])
		p = p[i+1:]
	}
}

// SplitValue undoes [Value] for values of several parts.
func SplitValue(value string) []string {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && i+1 < len(value):
			i++
			b.WriteByte(value[i])
		case c == '/':
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	return append(parts, b.String())
}

// scalar is a value that was found in an object: its kind, and its text if it is a text, a number or
// a boolean.
type scalar struct {
	kind jsonpath.Kind
	text string
}

// scalarOf reads a decoded value. What JSON does not have is of no kind.
func scalarOf(v any) scalar {
	switch v := v.(type) {
	case nil:
		return scalar{kind: jsonpath.KindNull}
	case string:
		return scalar{jsonpath.KindString, v}
	case bool:
		return scalar{jsonpath.KindBool, strconv.FormatBool(v)}
	case int64:
		return scalar{jsonpath.KindNumber, strconv.FormatInt(v, 10)}
	case int:
		return scalar{jsonpath.KindNumber, strconv.Itoa(v)}
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return scalar{jsonpath.KindNumber, formatFloat(v)}
		}
	}
	return scalar{}
}

// scalarOfJSON reads a value of a document, as scalarOf reads the decoded one.
func scalarOfJSON(v jsonpath.Value) scalar {
	switch k := v.Kind(); k {
	case jsonpath.KindString, jsonpath.KindBool:
		return scalar{k, v.String()}
	case jsonpath.KindNumber:
		return scalarOf(v.Any())
	default:
		return scalar{kind: k}
	}
}

// outcome says what became of a value.
type outcome uint8

const (
	keyed   outcome = iota
	absent          // there is no value
	unfit           // the value is not what the index holds
	tooLong         // the value is too long for a transform
)

// partKey is the key of a part, with the length of the value that it stands for, as people write it.
type partKey struct {
	key  string
	size int
}

// keyOf turns a value into the part of a key.
func keyOf(p *config.Part, s scalar, sorted bool) (partKey, outcome) {
	switch s.kind {
	case jsonpath.KindNull:
		return partKey{}, absent
	case jsonpath.KindString, jsonpath.KindNumber, jsonpath.KindBool:
	default:
		return partKey{}, unfit
	}
	if s.text == Null || p.Type == sortkey.String && s.kind != jsonpath.KindString {
		return partKey{}, unfit
	}
	text, ok, long := p.Transformed(s.text)
	switch {
	case long:
		return partKey{}, tooLong
	case !ok:
		return partKey{}, absent
	}
	key, ok := p.Encode(text, sorted)
	if !ok || key == Null {
		return partKey{}, unfit
	}
	return partKey{key, len(text)}, keyed
}

// formatFloat writes a float as JSON encoders of Kubernetes do.
func formatFloat(f float64) string {
	format := byte('f')
	if a := max(f, -f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	text := strconv.FormatFloat(f, format, -1, 64)
	if n := len(text); format == 'e' && n >= 4 && text[n-4:n-1] == "e-0" {
		text = text[:n-2] + text[n-1:] // e-09 is written e-9
	}
	return text
}
