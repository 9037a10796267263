package indexers

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Change is the difference of two resources of the same name.
type Change struct {
	// Added and Removed are the indexes that only the new or the old one has. A changed index is in both.
	Added, Removed []*Index
	// Fields are the other fields that differ, such as "storage". Objects that are already cached do not
	// reflect them.
	Fields []string
	// References reports whether the references differ, which does not affect caches.
	References bool
	// Metrics reports whether the metrics differ.
	Metrics bool
}

// DiffResources compares two resources. A running cache can apply a change without Fields.
func DiffResources(old, new *Resource) Change {
	c := Change{}
	for _, field := range []struct {
		name          string
		before, after any
	}{
		{"match", old.Match, new.Match},
		{"storage", old.Storage, new.Storage},
		{"prune", old.EffectivePrune(), new.EffectivePrune()},
		{"keep", old.EffectiveKeep(), new.EffectiveKeep()},
		{"namespaces", old.Namespaces, new.Namespaces},
		{"selectors", old.Selectors, new.Selectors},
	} {
		if !reflect.DeepEqual(field.before, field.after) {
			c.Fields = append(c.Fields, field.name)
		}
	}
	c.Removed, c.Added = indexesMissingIn(old, new), indexesMissingIn(new, old)
	c.References = !slices.EqualFunc(old.References, new.References, func(a, b *Reference) bool {
		return a.Name == b.Name && a.To == b.To && a.Index.fingerprint() == b.Index.fingerprint()
	})
	c.Metrics = !slices.EqualFunc(old.Metrics, new.Metrics, (*Metric).equals)
	return c
}

// indexesMissingIn returns the indexes of a that b does not have with the same definition.
func indexesMissingIn(a, b *Resource) (missing []*Index) {
	existing := b.CacheIndexes()
	for _, index := range a.CacheIndexes() {
		if !slices.ContainsFunc(existing, index.Same) {
			missing = append(missing, index)
		}
	}
	return missing
}

// Same reports whether two indexes have the same name and the same definition.
func (i *Index) Same(other *Index) bool {
	return i.Name == other.Name && i.fingerprint() == other.fingerprint()
}

// Renamed returns a copy of the index under another name, for caches with indexes of several configs.
func (i *Index) Renamed(name string) *Index {
	renamed := *i
	renamed.Name = name
	return &renamed
}

// fingerprint returns a text that is equal for indexes with the same content. It is not for display.
func (i *Index) fingerprint() string {
	var b strings.Builder
	add := func(name string, value any) { fmt.Fprintf(&b, "%s=%q;", name, fmt.Sprint(value)) }
	add("keys", i.Keys)
	add("sorted", i.Sorted)
	add("limits", [2]int{i.maxValues, i.maxValueBytes})
	if i.each != nil {
		add("each", i.each)
		add("lists", i.eachOfLists)
		add("keys", i.containers != nil)
	}
	if i.when != nil {
		add("when", i.when)
	}
	add("combine", i.combine)
	if i.whenCEL != nil {
		add("whenCEL", i.whenCEL)
	}
	for n := range i.parts {
		part := &i.parts[n]
		for _, s := range part.sources {
			add("path", s.path)
			add("root", s.root)
			add("read", s.kind)
			add("first", s.first)
		}
		if part.cel != nil {
			add("cel", part.cel)
		}
		add("type", part.typ)
		add("missing", part.missing.kind)
		add("value", part.missing.value)
		for _, t := range part.transforms {
			add("transform", t.name)
		}
	}
	return b.String()
}
