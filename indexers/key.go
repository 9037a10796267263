package indexers

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// OperandError says that a value cannot be looked up in an index.
type OperandError struct {
	// Index is the name of the index.
	Index string
	// Part is the number of the part that is wrong, from 0; -1 when it is about all of them.
	Part int
	// Message says what is wrong, with a way out.
	Message string
}

// Error gives the name of the index and the message.
func (e *OperandError) Error() string { return fmt.Sprintf("index %q: %s", e.Index, e.Message) }

// Key gives the key under which the index holds objects with these parts; each may be [Null]. Of an
// index that is neither sorted nor has types it is [Value]. It is what the ByIndex of an informer
// takes. The error is an [*OperandError]: the number of parts is wrong, or one is not of its type.
// Transforms are not applied.
func (i *Index) Key(parts ...string) (string, error) {
	if len(parts) != len(i.parts) {
		return "", i.wrongParts(len(parts), countWanted(len(i.parts)))
	}
	encoded, err := i.encode(parts)
	if err != nil {
		return "", err
	}
	return i.join(encoded), nil
}

// Prefix gives the beginning of the keys of all objects whose first parts are these. When all parts
// are given, or the only one, the last is the beginning of a text; it has to be of type string or of
// none then. The error is an [*OperandError]; see [Index.Key].
func (i *Index) Prefix(parts ...string) (string, error) {
	if len(parts) == 0 || len(parts) > len(i.parts) {
		return "", i.wrongParts(len(parts), fmt.Sprintf("1 to %d are", len(i.parts)))
	}
	last := len(parts) - 1
	open := len(parts) == len(i.parts)
	if typ := i.parts[last].Type; open && !typ.Text() {
		return "", &OperandError{i.Name, last,
			fmt.Sprintf("a value of type %s has no beginning to search for; use a range", typ)}
	}
	encoded, err := i.encode(parts)
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

// Parts takes a key of the index apart, and gives each part in its canonical form, or [Null]. What
// is not a key of the index comes back as one part, unchanged.
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
			if shown, ok := i.parts[n].Type.Show(p); ok {
				out[n] = shown
			}
		}
	}
	return out
}

// encode gives the parts of a key.
func (i *Index) encode(parts []string) ([]string, error) {
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

// join makes one key of its parts.
func (i *Index) join(encoded []string) string {
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

func countWanted(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

func (i *Index) wrongParts(got int, want string) error {
	parts := fmt.Sprintf("%d parts were", got)
	if got == 1 {
		parts = "1 part was"
	}
	what := "it is over one value"
	if i.Composite() {
		what = "its parts are " + strings.Join(i.Keys, ", ")
	}
	return &OperandError{i.Name, -1, fmt.Sprintf("%s given and %s wanted: %s", parts, want, what)}
}

// Operand gives the text of a part as the index has it: with lower, upper and trim applied, so that it is
// found however it is written. A regex is not applied, because what is looked up is what the regex gave, and
// neither is a trim before one. What stands for a missing value is left as it is. Of text that is only the
// beginning of a value (open), blanks at the end stay.
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

// LabelKey gives a key under which the index holds every object that has the label with this value, so
// that a search by labels can begin there. Where values are changed before they are indexed, there may
// be other objects under it. It is false when there is no such key: the index is over something else,
// or leaves some of these objects out.
func (i *Index) LabelKey(label, value string) (string, bool) {
	if label == "" || label != i.label {
		return "", false
	}
	key, outcome := keyOf(&i.parts[0], scalar{jsonpath.KindString, value}, i.Sorted)
	return key.key, outcome == keyed && key.size <= i.maxValueBytes
}

// labelOf gives the label that an index is over, if it is over all objects that have it; else "".
func labelOf(i *Index) string {
	if i.each != nil || i.when != nil || len(i.inner) != 1 {
		return ""
	}
	path := i.sources[0][0].path
	steps := path.Steps()
	if len(steps) != 3 || !path.Singular() || !named(steps[0], "metadata") || !named(steps[1], "labels") {
		return ""
	}
	return steps[2].Selectors[0].Name
}

func named(step jsonpath.Step, name string) bool { return step.Selectors[0].Name == name }
