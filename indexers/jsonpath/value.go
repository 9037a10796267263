package jsonpath

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
	return parseInt(v.raw)
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
