package jsonpath

import (
	"bytes"
	"cmp"
	"math"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Kind is the JSON kind of a value.
type Kind uint8

const (
	// KindInvalid is the kind of the zero [Value], and of Go values that JSON does not have.
	KindInvalid Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

var kindNames = [...]string{"invalid", "null", "bool", "number", "string", "array", "object"}

// String names the kind as JSON does: "null", "bool", "number", "string", "array" or "object".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[KindInvalid]
}

// Value is a value found in a document: its kind and its bytes, which are decoded only when they are
// asked for. It refers to the document it was found in and must not outlive a change to it. The zero
// Value has the kind KindInvalid.
type Value struct {
	raw     []byte
	kind    Kind
	encoded bool // a string with escapes or broken UTF-8
}

// Kind gives the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// Raw gives the bytes of the value as they are in the document, such as "true" or "\"a\"". They are
// valid JSON and may be given to FindJSON again. They must not be changed.
func (v Value) Raw() []byte { return v.raw }

// Bool gives a boolean; ok is false for another kind.
func (v Value) Bool() (b, ok bool) {
	return v.kind == KindBool && len(v.raw) > 0 && v.raw[0] == 't', v.kind == KindBool
}

// Int64 gives a number that decodes as an int64: it has neither a point nor an exponent, and fits.
// ok is false for any other value.
func (v Value) Int64() (i int64, ok bool) {
	if v.kind != KindNumber {
		return 0, false
	}
	return jsontext.ParseInteger(v.raw)
}

// Float64 gives a number, rounded when it is an integer that has no exact float64; ok is false for
// another kind.
func (v Value) Float64() (f float64, ok bool) {
	if v.kind != KindNumber {
		return 0, false
	}
	i, f, isInt := parseNumber(v.raw)
	if isInt {
		return float64(i), true
	}
	return f, true
}

// Text gives the decoded bytes of a string; ok is false for another kind. They belong to the
// document and must not be changed; a string with escapes is decoded into new memory.
func (v Value) Text() (text []byte, ok bool) {
	if v.kind != KindString {
		return nil, false
	}
	return unquoted(v.raw, v.encoded), true
}

// AppendText appends the decoded text of a string, and the JSON of any other kind, to dst. It
// allocates only when dst has to grow.
func (v Value) AppendText(dst []byte) []byte {
	switch {
	case v.kind != KindString:
		return append(dst, v.raw...)
	case !v.encoded:
		return append(dst, unquoted(v.raw, false)...)
	case dst == nil:
		return unquoted(v.raw, true)
	}
	return appendUnquoted(dst, v.raw[1:len(v.raw)-1])
}

// String gives the decoded text of a string, and the JSON of any other kind.
func (v Value) String() string {
	if v.kind == KindString {
		return string(unquoted(v.raw, v.encoded))
	}
	return string(v.raw)
}

// Any decodes the value as apimachinery does for unstructured objects: nil, bool, int64 (a number
// without a point that fits), float64, string, []any or map[string]any.
func (v Value) Any() any {
	switch v.kind {
	case KindBool:
		b, _ := v.Bool()
		return b
	case KindNumber:
		i, f, isInt := parseNumber(v.raw)
		if isInt {
			return i
		}
		return f
	case KindString:
		return v.String()
	case KindArray, KindObject:
		var t tape
		if t.scan(v.raw, everything) != nil { // overwritten since it was found
			return nil
		}
		return t.decode(0)
	}
	return nil
}

// decode builds the Go value of an entry of which everything was recorded.
func (t *tape) decode(i int32) any {
	e := &t.entries[i]
	switch e.kind {
	case KindArray:
		list := make([]any, 0, e.elements)
		for c := i + 1; c < e.skip; c = t.entries[c].skip {
			list = append(list, t.decode(c))
		}
		return list
	case KindObject:
		m := make(map[string]any)
		for c := i + 1; c < e.skip; c = t.entries[c].skip {
			m[string(t.key(c))] = t.decode(c) // the last of duplicates stays
		}
		return m
	}
	return t.value(i).Any()
}

// decode gives the Go value of a node.
func (n node) decode() any {
	if n.t == nil {
		return n.v
	}
	return n.t.value(n.i).Any()
}

// scalar is a value in a comparison.
type scalar struct {
	kind  Kind
	isInt bool // KindNumber: i holds it, else f
	b     bool
	i     int64
	f     float64
	s     string
	raw   []byte // KindString: used instead of s when it is not nil, to save the conversion
}

// scalarOf reads a decoded value. Decoders of unstructured objects give int64 and float64; int is
// taken too, because hand-written objects have it.
func scalarOf(v any) scalar {
	switch v := v.(type) {
	case nil:
		return scalar{kind: KindNull}
	case string:
		return scalar{kind: KindString, s: v}
	case int64:
		return scalar{kind: KindNumber, isInt: true, i: v}
	case bool:
		return scalar{kind: KindBool, b: v}
	case float64:
		return scalar{kind: KindNumber, f: v}
	case int:
		return scalar{kind: KindNumber, isInt: true, i: int64(v)}
	case map[string]any:
		return scalar{kind: KindObject}
	case []any:
		return scalar{kind: KindArray}
	}
	return scalar{}
}

// compare orders two scalars of the same kind. ordered is false when neither comes first and they
// are not equal either: kinds differ, a NaN, or kinds without an order.
func (a *scalar) compare(b *scalar) (result int, ordered bool) {
	if a.kind != b.kind {
		return 0, false
	}
	switch a.kind {
	case KindNull:
		return 0, true
	case KindBool:
		return 0, a.b == b.b
	case KindNumber:
		return compareNumbers(a, b)
	case KindString:
		return compareStrings(a, b), true
	}
	return 0, false
}

func compareStrings(a, b *scalar) int {
	switch {
	case a.raw == nil && b.raw == nil:
		return cmp.Compare(a.s, b.s)
	case a.raw != nil && b.raw != nil:
		return bytes.Compare(a.raw, b.raw)
	case a.raw != nil:
		return compareRaw(a.raw, b.s)
	}
	return -compareRaw(b.raw, a.s)
}

// compareRaw compares without a conversion; the compiler keeps string(a) on the spot.
func compareRaw(a []byte, b string) int {
	switch {
	case string(a) == b:
		return 0
	case string(a) < b:
		return -1
	}
	return 1
}

func compareNumbers(a, b *scalar) (int, bool) {
	switch {
	case a.isInt && b.isInt:
		return cmp.Compare(a.i, b.i), true
	case a.isInt:
		return compareIntFloat(a.i, b.f)
	case b.isInt:
		r, ordered := compareIntFloat(b.i, a.f)
		return -r, ordered
	case math.IsNaN(a.f) || math.IsNaN(b.f):
		return 0, false
	}
	return cmp.Compare(a.f, b.f), true
}

// compareIntFloat is exact: converting a large int64 to a float would round it, and then
// 9007199254740993 would equal 9007199254740992.0.
func compareIntFloat(i int64, f float64) (int, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= 1<<63:
		return -1, true
	case f < -1<<63:
		return 1, true
	}
	whole := math.Trunc(f)
	if r := cmp.Compare(i, int64(whole)); r != 0 {
		return r, true
	}
	return cmp.Compare(whole, f), true
}

// holds applies an operator to the outcome of a comparison.
func (op compareOp) holds(result int, ordered bool) bool {
	switch op {
	case opEqual:
		return ordered && result == 0
	case opNotEqual:
		return !ordered || result != 0
	case opLess:
		return ordered && result < 0
	case opLessEqual:
		return ordered && result <= 0
	case opGreater:
		return ordered && result > 0
	default:
		return ordered && result >= 0
	}
}

// unquoted gives the text of a JSON string with its quotes. It allocates only for an encoded one.
func unquoted(raw []byte, encoded bool) []byte {
	if len(raw) < 2 {
		return []byte{}
	}
	text := raw[1 : len(raw)-1 : len(raw)-1]
	if encoded {
		return appendUnquoted(nil, text)
	}
	return text
}

// appendUnquoted appends the decoded text between the quotes of a JSON string. Broken UTF-8 and
// lone surrogates become U+FFFD, as in sigs.k8s.io/json. The text is valid, but it may have been
// overwritten since the scan, so nothing may go wrong for any other bytes.
func appendUnquoted(dst, text []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(text))
	}
	return jsontext.AppendText(dst, text)
}
