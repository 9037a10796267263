package bind

import (
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Source is what [query.New] takes: the content of the informer, with the indexes of the resource under the
// names that the config gives them.
func (t *Target) Source() query.Source { return source{query.ForInformer(t.Informer), t.indexes} }

// following is the source of a target, and then of the target that has taken its place.
type following struct {
	binding *Binding
	target  *Target
}

// Snapshot implements query.Source. A target is given up, and may lose its indexes, after another has taken
// its place. So a snapshot is complete if its target is still in place after the snapshot has been taken.
// Later queries use the indexes as the next target declares them.
func (f *following) Snapshot() query.Snapshot {
	for t := f.serving(); ; {
		snapshot := t.Source().Snapshot()
		now := f.serving()
		if now == t {
			return declared{snapshot, t.Resource.Indexes}
		}
		t = now
	}
}

// serving returns the target that is in place now; the last one if the place is empty.
func (f *following) serving() *Target {
	f.binding.mu.Lock()
	defer f.binding.mu.Unlock()
	if now := f.binding.mu.slots[place{f.target.Resource.Name,
		f.target.GVR.GroupResource()}].serving; now != nil {
		return now
	}
	return f.target
}

// declared is a snapshot with the declarations of its indexes.
type declared struct {
	query.Snapshot
	indexes []*indexers.Index
}

// Declared returns the declarations, from which a query knows the types of values.
func (d declared) Declared() []*indexers.Index { return d.indexes }

// Dropped returns the number of values that an index has left out for a limit.
func (d declared) Dropped(name string) uint64 { return d.Snapshot.(snapshot).Dropped(name) }

// source shows the indexes of one resource under their own names. Informers are shared, also by resources of
// a config whose indexes have the same names.
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
	names := slices.DeleteFunc([]string{cache.NamespaceIndex},
		func(name string) bool { return !slices.Contains(there, name) })
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
