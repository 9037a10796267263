package readapi

import (
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// labelSet holds labels in a fifth of the memory of a map: keys and values in turn, ordered by key. Equal
// strings are stored once, for labels repeat from object to object.
type labelSet []string

var _ labels.Labels = labelSet(nil)

func newLabelSet(from map[string]string) labelSet {
	if len(from) == 0 {
		return nil
	}
	set := make(labelSet, 0, 2*len(from))
	for _, key := range slices.Sorted(maps.Keys(from)) {
		set = append(set, unique.Make(key).Value(), unique.Make(from[key]).Value())
	}
	return set
}

// Has implements labels.Labels.
func (s labelSet) Has(key string) bool { _, ok := s.Lookup(key); return ok }

// Get implements labels.Labels.
func (s labelSet) Get(key string) string { value, _ := s.Lookup(key); return value }

// Lookup implements labels.Labels.
func (s labelSet) Lookup(key string) (string, bool) {
	for i := 0; i+1 < len(s); i += 2 {
		if s[i] == key {
			return s[i+1], true
		}
	}
	return "", false
}
