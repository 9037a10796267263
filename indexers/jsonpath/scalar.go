package jsonpath

import (
	"bytes"
	"cmp"
	"math"
)

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
