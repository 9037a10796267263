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
	// KindInvalid is the kind of the zero [Value] and of Go values without JSON equivalent.
	KindInvalid Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// Value is a value in a document: its kind and its bytes, which are decoded on demand. It references the
// document, which must not change. The zero Value has KindInvalid.
type Value struct {
	raw     []byte
	kind    Kind
	encoded bool // a string with escapes or invalid UTF-8
}

func (v Value) Kind() Kind { return v.kind }

// Raw returns the bytes of the value in the document, such as "true" or "\"a\"". They are valid JSON for
// FindJSON and must not be changed.
func (v Value) Raw() []byte { return v.raw }

// Text returns the decoded bytes of a string; ok is false for other kinds. Strings without escapes reference
// the document and must not be changed.
func (v Value) Text() (text []byte, ok bool) {
	if v.kind != KindString {
		return nil, false
	}
	return unquote(v.raw, v.encoded), true
}

// String returns the decoded text of a string, or the JSON of other kinds.
func (v Value) String() string {
	if v.kind == KindString {
		return string(unquote(v.raw, v.encoded))
	}
	return string(v.raw)
}

// Any decodes the value like apimachinery does for unstructured objects: nil, bool, int64 (a number without
// point that fits), float64, string, []any or map[string]any.
func (v Value) Any() any {
	switch v.kind {
	case KindBool:
		return v.raw[0] == 't'
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
		if t.scan(v.raw, selectAll) != nil { // the document was overwritten
			return nil
		}
		return t.decode(0)
	}
	return nil
}

// decode builds the Go value of an entry that was recorded completely.
func (t *tape) decode(i int32) any {
	e := &t.entries[i]
	switch e.kind {
	case KindArray:
		list := make([]any, 0, e.elements)
		for c := i + 1; c < e.nextSibling; c = t.entries[c].nextSibling {
			list = append(list, t.decode(c))
		}
		return list
	case KindObject:
		m := make(map[string]any)
		for c := i + 1; c < e.nextSibling; c = t.entries[c].nextSibling {
			m[string(t.key(c))] = t.decode(c) // the last duplicate wins
		}
		return m
	}
	return t.value(i).Any()
}

func (n node) decode() any {
	if n.tape == nil {
		return n.value
	}
	return n.tape.value(n.index).Any()
}

type scalar struct {
	kind    Kind
	isInt   bool // integer is set, otherwise float
	boolean bool
	integer int64
	float   float64
	text    string
	raw     []byte // used instead of s if not nil, which saves a conversion
}

// scalarOf returns the kind of a decoded value, with its content unless it is an object or a list. Decoders
// give int64 and float64; hand-written objects also have int.
func scalarOf(v any) scalar {
	switch v := v.(type) {
	case nil:
		return scalar{kind: KindNull}
	case string:
		return scalar{kind: KindString, text: v}
	case int64:
		return scalar{kind: KindNumber, isInt: true, integer: v}
	case bool:
		return scalar{kind: KindBool, boolean: v}
	case float64:
		return scalar{kind: KindNumber, float: v}
	case int:
		return scalar{kind: KindNumber, isInt: true, integer: int64(v)}
	case map[string]any:
		return scalar{kind: KindObject}
	case []any:
		return scalar{kind: KindArray}
	}
	return scalar{}
}

// compare orders two scalars. ordered is false for different kinds, NaN, and unequal values without order.
func (a *scalar) compare(b *scalar) (result int, ordered bool) {
	if a.kind != b.kind {
		return 0, false
	}
	switch a.kind {
	case KindNull:
		return 0, true
	case KindBool:
		return 0, a.boolean == b.boolean
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
		return cmp.Compare(a.text, b.text)
	case a.raw != nil && b.raw != nil:
		return bytes.Compare(a.raw, b.raw)
	case a.raw != nil:
		return compareRaw(a.raw, b.text)
	}
	return -compareRaw(b.raw, a.text)
}

// compareRaw compares without allocation: the compiler optimizes string(a).
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
		return cmp.Compare(a.integer, b.integer), true
	case a.isInt:
		return compareIntFloat(a.integer, b.float)
	case b.isInt:
		r, ordered := compareIntFloat(b.integer, a.float)
		return -r, ordered
	case math.IsNaN(a.float) || math.IsNaN(b.float):
		return 0, false
	}
	return cmp.Compare(a.float, b.float), true
}

// compareIntFloat is exact. Converting a large int64 to float64 would round it, so that 9007199254740993
// would equal 9007199254740992.0.
func compareIntFloat(i int64, f float64) (int, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= 1<<63:
		return -1, true
	case f < -1<<63:
		return 1, true
	}
	integer := math.Trunc(f)
	if r := cmp.Compare(i, int64(integer)); r != 0 {
		return r, true
	}
	return cmp.Compare(integer, f), true
}

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

// unquote returns the text of a JSON string with its quotes. It allocates only for an encoded one.
func unquote(raw []byte, encoded bool) []byte {
	if len(raw) < 2 {
		return []byte{}
	}
	text := raw[1 : len(raw)-1 : len(raw)-1]
	if encoded {
		return unescape(text)
	}
	return text
}

// unescape decodes the text between the quotes of a JSON string. Invalid UTF-8 and lone surrogates become
// U+FFFD, as in sigs.k8s.io/json. Any input is safe, because the document might have been overwritten since
// the scan.
func unescape(text []byte) []byte { return jsontext.AppendUnescaped(make([]byte, 0, len(text)), text) }
