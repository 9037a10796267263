package discovery

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is the state of a Tracker at one moment. It is immutable and safe for concurrent use.
type Snapshot struct {
	types               map[schema.GroupResource]Type
	order               []group // groups and their versions in the server's order, without resources
	failedGroupVersions []GroupFailure

	catalog func() *Catalog
}

func newSnapshot(s *state) *Snapshot {
	out := &Snapshot{types: maps.Clone(s.types), order: s.order, failedGroupVersions: s.failedGroupVersions}
	out.catalog = sync.OnceValue(func() *Catalog { return catalogOf(out) })
	return out
}

// Lookup returns a type.
func (s *Snapshot) Lookup(gr schema.GroupResource) (Type, bool) {
	t, ok := s.types[gr]
	return t, ok
}

// Len returns the number of types.
func (s *Snapshot) Len() int { return len(s.types) }

// Types returns all types, sorted by group and resource.
func (s *Snapshot) Types() []Type {
	out := make([]Type, 0, len(s.types))
	for _, gr := range slices.SortedFunc(maps.Keys(s.types), compareGroupResource) {
		out = append(out, s.types[gr])
	}
	return out
}

// Catalog returns the types in a Catalog to resolve names, with Resource.CRDUID set. Types that are not
// established and versions that are not served are not included. The catalog is built once per snapshot.
func (s *Snapshot) Catalog() *Catalog { return s.catalog() }
