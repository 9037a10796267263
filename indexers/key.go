package indexers

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// OperandError is returned for a value that cannot be looked up in an index.
type OperandError struct {
	// Index is the name of the index.
	Index string
	// Part is the number of the invalid part, from 0; -1 for all parts.
	Part int
	// Message is the cause with a remedy.
	Message string
}

// Error implements error.
func (e *OperandError) Error() string { return fmt.Sprintf("index %q: %s", e.Index, e.Message) }

// Key returns the index key of a value with these parts, for ByIndex of an informer. A part may be [Null].
// For an index that has no types and is not sorted it equals [Value]. Transforms are not applied. The error
// is an [*OperandError]: a wrong number of parts, or a part of another type.
func (i *Index) Key(parts ...string) (string, error) {
	if len(parts) != len(i.parts) {
		return "", i.partCountError(len(parts), strconv.Itoa(len(i.parts)))
	}
	encoded, err := i.encodeParts(parts)
	if err != nil {
		return "", err
	}
	return i.joinKey(encoded), nil
}

// Prefix returns the common prefix of the keys of all values with these first parts. If all parts are given,
// the last one is a text prefix; it must have type string or none. The error is an [*OperandError]; see
// [Index.Key].
func (i *Index) Prefix(parts ...string) (string, error) {
	if len(parts) == 0 || len(parts) > len(i.parts) {
		return "", i.partCountError(len(parts), fmt.Sprintf("1 to %d", len(i.parts)))
	}
	last := len(parts) - 1
	endsInPrefix := len(parts) == len(i.parts)
	if typ := i.parts[last].typ; endsInPrefix && !typ.IsText() {
		return "", &OperandError{i.Name, last,
			fmt.Sprintf("a value of type %s has no prefixes; use a range", typ)}
	}
	encoded, err := i.encodeParts(parts)
	if err != nil {
		return "", err
	}
	switch {
	case len(i.parts) == 1:
		return encoded[0], nil
	case i.Sorted:
		var key []byte
		for n, p := range encoded {
			if n == last && endsInPrefix {
				return string(sortkey.AppendOpenPart(key, p)), nil
			}
			key = sortkey.AppendPart(key, p)
		}
		return string(key), nil
	}
	if !endsInPrefix {
		encoded = append(encoded, "")
	}
	return Value(encoded...), nil
}

// Parts splits a key of the index into its parts in canonical form, or [Null]. It returns an invalid key
// unchanged as one part.
func (i *Index) Parts(key string) []string {
	encoded := []string{key}
	switch {
	case len(i.parts) == 1:
	case i.Sorted:
		parts, ok := sortkey.Parts(key)
		if !ok {
			return encoded
		}
		encoded = parts
	default:
		encoded = SplitValue(key)
	}
	if len(encoded) != len(i.parts) {
		return []string{key}
	}
	out := make([]string, len(encoded))
	for n, p := range encoded {
		out[n] = p
		if i.Sorted && p != Null {
			if shown, ok := i.parts[n].typ.ValueOf(p); ok {
				out[n] = shown
			}
		}
	}
	return out
}

func (i *Index) encodeParts(parts []string) ([]string, error) {
	encoded := make([]string, len(parts))
	for n, text := range parts {
		encoded[n] = text
		if text == Null {
			continue
		}
		key, ok := i.parts[n].encode(text, i.Sorted)
		if !ok {
			return nil, &OperandError{i.Name, n, i.parts[n].typ.Mismatch(text)}
		}
		encoded[n] = key
	}
	return encoded, nil
}

func (i *Index) joinKey(encoded []string) string {
	if len(encoded) == 1 {
		return encoded[0]
	}
	if !i.Sorted {
		return Value(encoded...)
	}
	var key []byte
	for _, p := range encoded {
		key = sortkey.AppendPart(key, p)
	}
	return string(key)
}

func (i *Index) partCountError(got int, want string) error {
	names := ""
	if i.Composite() {
		names = " (" + strings.Join(i.Keys, ", ") + ")"
	}
	return &OperandError{i.Name, -1, fmt.Sprintf("the number of parts is %d, want %s%s", got, want, names)}
}

// Operand applies the transforms to a part of an operand, so that it matches the indexed values. It does not
// apply a regex, because operands are compared with its result, and it leaves the default of a missing value
// unchanged. If isPrefix is set, text is a prefix and keeps trailing blanks.
//
// [Index.Key] and [Index.Prefix] do not do this.
func (i *Index) Operand(part int, text string, isPrefix bool) string {
	p := &i.parts[part]
	if text == Null || p.missing.kind == missingValue && text == p.missing.value {
		return text
	}
	for _, t := range p.transforms {
		switch {
		case strings.HasPrefix(t.name, "regex "):
		case t.name == "Trim" && isPrefix:
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		default:
			text, _ = t.apply(text)
		}
	}
	return text
}

// LabelKey returns a key under which the index has every object with this label value, so that a search by
// labels can start there. Because of transforms, other objects can have the same key. It returns false if
// there is no such key.
func (i *Index) LabelKey(label, value string) (string, bool) {
	if label == "" || label != i.label {
		return "", false
	}
	key, outcome := keyOf(&i.parts[0], scalar{jsonpath.KindString, value}, i.Sorted)
	return key.key, outcome == keyComplete && key.valueLength <= i.maxValueBytes
}

// indexedLabel returns the label that an index is over if it contains all objects with the label, otherwise
// "".
func indexedLabel(i *Index) string {
	if i.each != nil || i.when != nil || i.whenCEL != nil || len(i.elementPaths) != 1 {
		return ""
	}
	path := i.parts[0].sources[0].path
	steps := path.Steps()
	if len(steps) != 3 || !path.Singular() || !selectsOnlyName(steps[0], "metadata") ||
		!selectsOnlyName(steps[1], "labels") {
		return ""
	}
	return steps[2].Selectors[0].Name
}

// Null is the value of objects without a value in an index with "missing: AsNull". It is unambiguous, because
// a text of this one character is never indexed. Sorted indexes order it before everything but "".
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
		b.WriteString(partEscaper.Replace(p))
	}
	return b.String()
}

var partEscaper = strings.NewReplacer("/", `\/`, `\`, `\\`)

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

func keyOf(part *indexPart, s scalar, sorted bool) (partKey, keyResult) {
	switch s.kind {
	case jsonpath.KindNull:
		return partKey{}, keyMissing
	case jsonpath.KindString, jsonpath.KindNumber, jsonpath.KindBool:
	default:
		return partKey{}, keyMistyped
	}
	if s.text == Null || part.typ == sortkey.String && s.kind != jsonpath.KindString {
		return partKey{}, keyMistyped
	}
	text, ok, tooLong := part.applyTransforms(s.text)
	switch {
	case tooLong:
		return partKey{}, keyTooLong
	case !ok:
		return partKey{}, keyMissing
	}
	key, ok := part.encode(text, sorted)
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
