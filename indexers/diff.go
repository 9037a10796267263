package indexers

import "slices"

// Change is what differs about one resource between two configs.
type Change struct {
	// Name is the name of the resource.
	Name string
	// Old and New are the resource before and after; one of them is nil when it was added or removed.
	Old, New *Resource
	// Added and Removed are the indexes that only one of the two has. An index that was changed is in both.
	Added, Removed []*Index
	// Fields are the fields other than indexes that differ, such as "storage": objects that are in a cache
	// already do not show what they ask for.
	Fields []string
	// References says that what objects refer to differs, which no cache needs to know.
	References bool
}

// InPlace reports whether a cache that follows the resource can take the change over while it runs: nothing
// but indexes differs. An index over something that was pruned so far changes what is pruned, and so needs
// objects to be read anew.
func (c Change) InPlace() bool { return c.Old != nil && c.New != nil && len(c.Fields) == 0 }

// Diff gives what differs between two configs: first what was removed or changed, in the order of the old
// one, and then what was added, in the order of the new one. Where something is written, and in which file,
// is no difference. nil stands for an empty config.
func Diff(old, new *Config) []Change {
	var changes []Change
	for _, r := range old.resources() {
		now, ok := new.resource(r.Name)
		if !ok {
			changes = append(changes, Change{Name: r.Name, Old: r, Removed: r.Indexes})
			continue
		}
		if c := compareResources(r, now); c.References || len(c.Fields)+len(c.Added)+len(c.Removed) > 0 {
			changes = append(changes, c)
		}
	}
	for _, r := range new.resources() {
		if _, ok := old.resource(r.Name); !ok {
			changes = append(changes, Change{Name: r.Name, New: r, Added: r.Indexes})
		}
	}
	return changes
}

func (c *Config) resources() []*Resource {
	if c == nil {
		return nil
	}
	return c.Resources
}

func (c *Config) resource(name string) (*Resource, bool) {
	if c == nil {
		return nil, false
	}
	return c.Resource(name)
}

func compareResources(old, new *Resource) Change {
	c := Change{Name: old.Name, Old: old, New: new}
	before, after := old.keeping(), new.keeping()
	for i := range before {
		if before[i] != after[i] {
			c.Fields = append(c.Fields, before[i][0])
		}
	}
	c.Removed, c.Added = onlyIn(old, new), onlyIn(new, old)
	c.References = !slices.EqualFunc(old.References, new.References, func(a, b *Reference) bool {
		return a.Name == b.Name && a.To == b.To && a.Index.definition() == b.Index.definition()
	})
	return c
}

// onlyIn gives the indexes of a that b does not have, or has otherwise.
func onlyIn(a, b *Resource) (only []*Index) {
	for _, index := range a.Indexes {
		if other, ok := b.Index(index.Name); !ok || other.definition() != index.definition() {
			only = append(only, index)
		}
	}
	return only
}
