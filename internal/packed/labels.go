package packed

import (
	"iter"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Labels implements labels.Labels on encoded labels. A lookup searches linearly, and allocates nothing.
type Labels struct{ object *Object }

// Labels returns the object's labels without decoding the object.
func (o *Object) Labels() labels.Labels { return Labels{o} }

func (l Labels) Has(label string) bool {
	_, found := l.Lookup(label)
	return found
}

func (l Labels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

func (l Labels) Lookup(label string) (value string, found bool) {
	if l.object.hasComplexLabels() {
		value, found = l.object.GetLabels()[label]
		return value, found
	}
	for k, v := range labelPairs(l.object.labelsJSON()) {
		if k == label {
			value, found = v, true // the last duplicate wins
		}
	}
	return value, found
}

// GetLabels returns metadata.labels in a new map, which does not share the object's memory.
func (o *Object) GetLabels() map[string]string {
	if o.hasComplexLabels() {
		return o.MetadataReader().GetLabels()
	}
	if o.labelsLen == 0 {
		return nil
	}
	return maps.Collect(labelPairs(strings.Clone(o.labelsJSON())))
}

func (o *Object) hasComplexLabels() bool {
	return o.state.Load()&flagComplexLabels != 0 || o.info.unpackableObject != nil
}

// labelsJSON returns the JSON of labels that are not complex.
func (o *Object) labelsJSON() string { return o.slab[o.labelsOffset : o.labelsOffset+o.labelsLen] }

// labelPairs iterates over the JSON of labels that are not complex. A key can occur twice.
func labelPairs(text string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for key, rest, ok := nextString(text); ok; key, rest, ok = nextString(rest) {
			var value string
			if value, rest, ok = labelValue(rest); !ok || !yield(key, value) {
				return
			}
		}
	}
}

// nextString returns the next string of text, which has no escapes, and the text after it.
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

// labelValue returns the value after the colon at the start of text, and the text after it. The value is a
// string without escapes, or null, which means the empty string. ok is false for other values.
func labelValue(text string) (value, rest string, ok bool) {
	for len(text) > 0 && (text[0] == ':' || text[0] <= ' ') {
		text = text[1:]
	}
	if len(text) > 0 && text[0] == '"' {
		return nextString(text)
	}
	rest, ok = strings.CutPrefix(text, "null")
	return "", rest, ok
}

// areSimpleLabels reports whether the JSON of an object has only nulls and ASCII strings without escapes.
func areSimpleLabels(text []byte) bool {
	if !isUnescapedASCII(text) {
		return false
	}
	for _, rest, ok := nextString(textOf(text)); ok; _, rest, ok = nextString(rest) {
		if _, rest, ok = labelValue(rest); !ok {
			return false
		}
	}
	return true
}
