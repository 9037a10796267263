package indexers

import (
	"math"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// Null is the value of objects without a value in an index with "missing: null". It is unambiguous, because a
// text of this one character is never indexed. Sorted indexes order it before everything but "".
const Null = "\x00"

// Value builds the value to look up in an unsorted index without types. Several parts, in the order of
// [Index.Keys], are joined by "/". "/" and "\" within a part are escaped with a backslash, so that different
// parts give different values:
//
//	Value("a", "b")   // a/b
//	Value("a/b", "c") // a\/b/c
//
// A part may be [Null]. Without parts the result is "". [Index.Key] works for all indexes.
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

// SplitValue splits a value of several parts that [Value] has built.
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

// scalar is a value in an object: its kind, and its text if it is a string, number or boolean.
type scalar struct {
	kind jsonpath.Kind
	text string
}

// scalarOf converts a decoded value. It returns the zero scalar for lists, maps and types that JSON lacks.
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

// scalarOfJSON is scalarOf for a value in a scanned document. Lists and objects keep their kind.
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

// keyResult is the outcome of computing the key of a value.
type keyResult uint8

const (
	keyComplete keyResult = iota
	keyMissing            // there is no value
	keyMistyped           // the value does not have the type of the index
	keyTooLong            // the value is too long for a transform
)

// partKey is the key of a part with the length of the value before encoding.
type partKey struct {
	key         string
	valueLength int
}

func keyOf(p *config.Part, s scalar, sorted bool) (partKey, keyResult) {
	switch s.kind {
	case jsonpath.KindNull:
		return partKey{}, keyMissing
	case jsonpath.KindString, jsonpath.KindNumber, jsonpath.KindBool:
	default:
		return partKey{}, keyMistyped
	}
	if s.text == Null || p.Type == sortkey.String && s.kind != jsonpath.KindString {
		return partKey{}, keyMistyped
	}
	text, ok, tooLong := p.ApplyTransforms(s.text)
	switch {
	case tooLong:
		return partKey{}, keyTooLong
	case !ok:
		return partKey{}, keyMissing
	}
	key, ok := p.Encode(text, sorted)
	if !ok || key == Null {
		return partKey{}, keyMistyped
	}
	return partKey{key, len(text)}, keyComplete
}

// formatFloat formats a float like the JSON encoder of Kubernetes.
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
