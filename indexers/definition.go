package indexers

import (
	"fmt"
	"strings"
)

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
	if i.elementPath != nil {
		add("each", i.elementPath)
	}
	if i.when != nil {
		add("when", i.when)
	}
	for n := range i.parts {
		p := &i.parts[n]
		for _, s := range p.Sources {
			add("path", s.Path)
			add("root", s.Root)
		}
		add("type", p.Type)
		add("missing", p.Missing.Kind)
		add("value", p.Missing.Value)
		for _, t := range p.Transforms {
			add("transform", t.Name)
		}
	}
	return b.String()
}

// storageFields returns the fields that control how objects are stored, by name.
func (r *Resource) storageFields() [][2]string {
	return [][2]string{
		{"match", fmt.Sprintf("%q", r.Match)},
		{"storage", r.Storage.Mode},
		{"prune", fmt.Sprintf("%q", r.declared.Prune.Without(r.declared.AllIndexes()).Paths())},
		{"keep", fmt.Sprintf("%q", r.EffectiveKeep())},
		{"namespaces", fmt.Sprintf("%q %q", r.Namespaces.Include, r.Namespaces.Exclude)},
		{"selectors", fmt.Sprintf("%q %q", r.Selectors.Labels, r.Selectors.Fields)},
	}
}
