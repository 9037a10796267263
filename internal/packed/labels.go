package packed

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

var _ labels.Labels = Labels{}

// Labels are the labels of an object, read where they are, as labels.Selector.Matches takes them. Looking one
// up compares it with all, without an allocation.
type Labels struct{ object *Object }

// Labels returns the labels of the object, without decoding them.
func (o *Object) Labels() labels.Labels { return Labels{o} }

// Has implements labels.Labels.
func (l Labels) Has(label string) bool {
	_, found := l.Lookup(label)
	return found
}

// Get implements labels.Labels.
func (l Labels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// Lookup implements labels.Labels.
func (l Labels) Lookup(label string) (value string, found bool) {
	if l.object.oddLabels() {
		value, found = l.object.Unstructured().GetLabels()[label]
		return value, found
	}
	for k, v := range pairs(l.object.plainLabels()) {
		if k == label {
			value, found = v, true // the last one counts
		}
	}
	return value, found
}

// GetLabels returns metadata.labels, in a new map with memory of its own.
func (o *Object) GetLabels() map[string]string {
	if o.oddLabels() {
		return o.Unstructured().GetLabels()
	}
	if o.labelsLen == 0 {
		return nil
	}
	all := map[string]string{}
	for k, v := range pairs(strings.Clone(o.plainLabels())) {
		all[k] = v
	}
	return all
}

func (o *Object) oddLabels() bool { return o.word.Load()&flagOddLabels != 0 || o.class.kept != nil }

// plainLabels is the JSON of the labels of an object whose labels are not odd.
func (o *Object) plainLabels() string { return o.slab[o.labelsAt : o.labelsAt+o.labelsLen] }

// pairs are the labels in the JSON of labels that are not odd; a key can occur twice.
func pairs(text string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		left := text
		for {
			key, rest, ok := nextString(left)
			if !ok {
				return
			}
			// After the colon comes a string or null. A null is as good as an empty string, and the next
			// string after it would be another key.
			value := ""
			if left = rest; isStringNext(rest) {
				value, left, _ = nextString(rest)
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

// nextString returns the next string of a text without escapes, and what is after it.
func nextString(text string) (found, rest string, ok bool) {
	start := strings.IndexByte(text, '"')
	if start < 0 {
		return "", "", false
	}
	text = text[start+1:]
	end := strings.IndexByte(text, '"')
	if end < 0 {
		return "", "", false
	}
	return text[:end], text[end+1:], true
}

// isStringNext reports whether the value after the colon that text begins with is a string.
func isStringNext(text string) bool {
	for i := range len(text) {
		switch text[i] {
		case '"':
			return true
		case ' ', '\t', '\r', '\n', ':':
		default:
			return false
		}
	}
	return false
}

// plainLabels reports whether the JSON of an object has strings and nulls only, none with escapes, all ASCII.
func plainLabels(text []byte) bool {
	if !isPlain(text) {
		return false
	}
	rest := textOf(text)
	for {
		var ok bool
		if _, rest, ok = nextString(rest); !ok {
			return true
		}
		if isStringNext(rest) {
			_, rest, _ = nextString(rest)
			continue
		}
		if value := strings.TrimLeft(rest, ": \t\r\n"); len(value) == 0 || value[0] != 'n' {
			return false
		}
	}
}
