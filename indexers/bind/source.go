package bind

import (
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/query"
)

// Source is what [query.New] takes: the content of the informer, with the indexes of the resource under the names that
// the config gives them.
func (t *Target) Source() query.Source { return source{query.ForInformer(t.Informer), t.indexes} }

// source shows the indexes of one resource under their own names. Informers are shared, also by resources of a config
// whose indexes have the same names.
type source struct {
	query.Source
	indexes map[string]bound
}

// Snapshot implements query.Source.
func (s source) Snapshot() query.Snapshot { return snapshot{s.Source.Snapshot(), s.indexes} }

type snapshot struct {
	query.Snapshot
	indexes map[string]bound
}

// inner is the name of an index in the informer; "" when the resource has no such index.
func (s snapshot) inner(name string) string {
	if name == cache.NamespaceIndex {
		return name
	}
	return s.indexes[name].name
}

// Index implements query.Snapshot.
func (s snapshot) Index(name string) (query.Index, bool) {
	inner := s.inner(name)
	if inner == "" {
		return nil, false
	}
	return s.Snapshot.Index(inner)
}

// IndexNames implements query.Snapshot.
func (s snapshot) IndexNames() []string {
	there := s.Snapshot.IndexNames()
	names := slices.DeleteFunc([]string{cache.NamespaceIndex}, func(name string) bool { return !slices.Contains(there, name) })
	for name, index := range s.indexes {
		if slices.Contains(there, index.name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Dropped says how many values an index has left out for a limit.
func (s snapshot) Dropped(name string) uint64 {
	if counting, ok := s.Snapshot.(interface{ Dropped(index string) uint64 }); ok {
		return counting.Dropped(s.inner(name))
	}
	return 0
}
