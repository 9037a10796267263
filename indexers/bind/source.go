package bind

import (
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Source returns the content of the informer for [query.New], with the indexes of the resource under their
// names in the config.
func (t *Target) Source() query.Source {
	return renamingSource{query.ForInformer(t.Informer), t.indexes}
}

// switchingSource is a source that switches from a target to its replacement.
type switchingSource struct {
	binding *Binding
	target  *Target
}

// Snapshot implements query.Source. A target can lose its indexes after its replacement took over, so that a
// snapshot is complete only if its target still serves after the snapshot was taken. Later queries use the
// declarations of the next target.
func (f *switchingSource) Snapshot() query.Snapshot {
	for t := f.serving(); ; {
		snapshot := t.Source().Snapshot()
		now := f.serving()
		if now == t {
			return declaredSnapshot{snapshot, t.Resource.Indexes}
		}
		t = now
	}
}

// serving returns the current target, or the last one if there is none.
func (f *switchingSource) serving() *Target {
	f.binding.mu.Lock()
	defer f.binding.mu.Unlock()
	if now := f.binding.mu.slots[slotKey{f.target.Resource.Name,
		f.target.GVR.GroupResource()}].serving; now != nil {
		return now
	}
	return f.target
}

type declaredSnapshot struct {
	query.Snapshot
	indexes []*indexers.Index
}

// Declared returns the declarations, which have the types of values.
func (d declaredSnapshot) Declared() []*indexers.Index { return d.indexes }

// Dropped returns the number of values that an index has left out because of a limit.
func (d declaredSnapshot) Dropped(name string) uint64 {
	return d.Snapshot.(renamedSnapshot).Dropped(name)
}

// renamingSource renames the indexes of one resource in a shared informer to their names in the config.
type renamingSource struct {
	query.Source
	indexes map[string]informerIndex
}

// Snapshot implements query.Source.
func (s renamingSource) Snapshot() query.Snapshot {
	return renamedSnapshot{s.Source.Snapshot(), s.indexes}
}

type renamedSnapshot struct {
	query.Snapshot
	indexes map[string]informerIndex
}

// informerName returns the name of an index in the informer; "" if the resource has no such index.
func (s renamedSnapshot) informerName(name string) string {
	if name == cache.NamespaceIndex {
		return name
	}
	return s.indexes[name].name
}

// Index implements query.Snapshot.
func (s renamedSnapshot) Index(name string) (query.Index, bool) {
	inner := s.informerName(name)
	if inner == "" {
		return nil, false
	}
	return s.Snapshot.Index(inner)
}

// IndexNames implements query.Snapshot.
func (s renamedSnapshot) IndexNames() []string {
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

// Dropped returns the number of values that an index has left out because of a limit.
func (s renamedSnapshot) Dropped(name string) uint64 {
	if counting, ok := s.Snapshot.(interface{ Dropped(index string) uint64 }); ok {
		return counting.Dropped(s.informerName(name))
	}
	return 0
}
