package indexers

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/crdcache/crdcache/indexers/internal/config"
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
	open := len(parts) == len(i.parts)
	if typ := i.parts[last].Type; open && !typ.IsText() {
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
			if n == last && open {
				return string(sortkey.AppendOpenPart(key, p)), nil
			}
			key = sortkey.AppendPart(key, p)
		}
		return string(key), nil
	}
	var b strings.Builder
	for n, p := range encoded {
		appendPart(&b, p)
		if n < last || !open {
			b.WriteByte('/')
		}
	}
	return b.String(), nil
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
			if shown, ok := i.parts[n].Type.ValueOf(p); ok {
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
		key, ok := i.parts[n].Encode(text, i.Sorted)
		if !ok {
			return nil, &OperandError{i.Name, n, i.parts[n].Type.Mismatch(text)}
		}
		encoded[n] = key
	}
	return encoded, nil
}

// joinKey makes one key of encoded parts.
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

// Operand applies lower, upper and trim to a part of an operand, so that it matches the indexed values. It
// does not apply a regex, because operands are compared with its result, nor a trim before one, and it leaves
// the replacement of a missing value unchanged. If open is set, text is a prefix and keeps trailing blanks.
//
// [Index.Key] and [Index.Prefix] do not do this.
func (i *Index) Operand(part int, text string, open bool) string {
	p := &i.parts[part]
	if text == Null || p.Missing.Kind == config.MissingValue && text == p.Missing.Value {
		return text
	}
	last := -1
	for n, t := range p.Transforms {
		if strings.HasPrefix(t.Name, "regex ") {
			last = n
		}
	}
	for n, t := range p.Transforms {
		switch {
		case strings.HasPrefix(t.Name, "regex "), t.Name == "trim" && n < last:
		case t.Name == "trim" && open:
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		default:
			text, _ = t.Apply(text)
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
	if i.elementPath != nil || i.when != nil || len(i.elementPaths) != 1 {
		return ""
	}
	path := i.sources[0][0].path
	steps := path.Steps()
	if len(steps) != 3 || !path.Singular() || !isField(steps[0], "metadata") || !isField(steps[1], "labels") {
		return ""
	}
	return steps[2].Selectors[0].Name
}

func isField(step jsonpath.Step, name string) bool { return step.Selectors[0].Name == name }
