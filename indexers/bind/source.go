package bind

import (
	"slices"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/query"
)

// Source is what [query.New] takes: the content of the informer, with the indexes of the resource under the names that
// the config gives them.
func (t *Target) Source() query.Source { return source{query.ForInformer(t.Informer), t.indexes} }

// following is the source of a target, and then of what has taken its place, as long as that has the same indexes.
type following struct {
	binding *Binding
	target  *Target
	// judged is the last target that was compared.
	judged atomic.Pointer[judgement]
}

type judgement struct {
	of   *Target
	fits bool
}

// Snapshot implements query.Source. A target is given up, and may lose its indexes, after another has taken its place: a
// snapshot of one that is in its place still, after it has been taken, is whole.
func (f *following) Snapshot() query.Snapshot {
	for t := f.serving(); ; {
		snapshot := t.Source().Snapshot()
		now := f.serving()
		if now == t {
			return snapshot
		}
		t = now
	}
}

// serving gives the target that is in the place now, if it has the indexes.
func (f *following) serving() *Target {
	f.binding.mu.Lock()
	now := f.binding.mu.slots[place{f.target.Resource.Name, f.target.GVR.GroupResource()}].serving
	f.binding.mu.Unlock()
	if now == nil || now == f.target {
		return f.target
	}
	j := f.judged.Load()
	if j == nil || j.of != now {
		j = &judgement{now, f.target.indexedAs(now)}
		f.judged.Store(j)
	}
	if j.fits {
		return now
	}
	return f.target
}

// indexedAs reports whether another target has all indexes of this one.
func (t *Target) indexedAs(other *Target) bool {
	for _, index := range t.Resource.Indexes {
		if !slices.ContainsFunc(other.Resource.Indexes, index.Same) {
			return false
		}
	}
	return true
}

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
