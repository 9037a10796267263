package indexers

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Same reports whether two indexes have the same name and hold the same of every object.
func (i *Index) Same(other *Index) bool {
	return i.Name == other.Name && i.definition() == other.definition()
}

// Renamed gives the same index under another name, for caches that several share and where names of one may
// be taken.
func (i *Index) Renamed(name string) *Index {
	renamed := *i
	renamed.Name = name
	return &renamed
}

// definition writes out all that decides what the index holds, so that two indexes with the same definition
// hold the same. It is not for people.
func (i *Index) definition() string {
	var b strings.Builder
	add := func(name string, value any) { fmt.Fprintf(&b, "%s=%q;", name, fmt.Sprint(value)) }
	add("keys", i.Keys)
	add("sorted", i.Sorted)
	add("unique", i.Unique)
	add("limits", [2]int{i.maxValues, i.maxValueBytes})
	if i.each != nil {
		add("each", i.each)
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

// keeping writes out how the objects of a resource are kept, by the names of the fields.
func (r *Resource) keeping() [][2]string {
	return [][2]string{
		{"match", fmt.Sprintf("%q", []string{r.Match.Group, r.Match.Version, r.Match.Versions,
			r.Match.Resource, r.Match.Kind})},
		{"storage", r.Storage.Mode},
		{"prune", fmt.Sprintf("%q", config.Prune(r.EffectivePrune()).Paths())},
		{"namespaces", fmt.Sprintf("%q %q", r.Namespaces.Include, r.Namespaces.Exclude)},
		{"selectors", fmt.Sprintf("%q %q", r.Selectors.Labels, r.Selectors.Fields)},
	}
}
