package bind

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/naming"
)

// View is an informer with indexes under their names in a config. In the informer they can have other names:
// several configs can share it, and a changed index is added before the previous one is removed. A View is
// immutable. It is a query.Source whose snapshots declare their indexes.
type View struct {
	informer     *dynamicinformer.Informer
	handle       *dynamicinformer.Handle // nil if the view owns no indexes
	prefix       string
	queryIndexes []*indexers.Index
	ctx          context.Context // ends when end releases the handle
	end          context.CancelFunc
	// isRecent is set when the informer is as recent as the one that it replaces.
	isRecent *atomic.Bool
	// indexes are the indexes in the informer, by their names in the config.
	indexes map[string]informerIndex
}

type informerIndex struct {
	name string
	// functions compute the index and count; nil if they are unknown.
	functions *indexers.Functions
	index     *indexers.Index
}

// NewView adds indexes to the informer of a handle, which the view then owns. Queries can use the declared
// indexes; the others are for metrics. Names in the informer begin with prefix. After an error the handle is
// unchanged. The end of ctx, and limits, end the computation of indexes. The limits also apply to the first
// list of the informer; then call EndBuild.
func NewView(ctx context.Context, limits indexers.BuildLimits, handle *dynamicinformer.Handle, prefix string,
	indexes, queryIndexes []*indexers.Index) (*View, error) {
	v := &View{informer: handle.Informer(), handle: handle, prefix: prefix, queryIndexes: queryIndexes,
		isRecent: new(atomic.Bool)}
	v.ctx, v.end = context.WithCancel(context.Background())
	var err error
	v.indexes, err = v.addIndexes(ctx, limits, indexes)
	return v, err
}

// ViewOf returns a view of indexes that an informer already has under the same names.
func ViewOf(informer *dynamicinformer.Informer, indexes ...*indexers.Index) *View {
	v := &View{informer: informer, queryIndexes: indexes, indexes: map[string]informerIndex{}}
	for _, index := range indexes {
		v.indexes[index.Name] = informerIndex{name: index.Name, index: index}
	}
	return v
}

// Informer returns the informer.
func (v *View) Informer() *dynamicinformer.Informer { return v.informer }

// Declared returns the indexes for queries.
func (v *View) Declared() []*indexers.Index { return v.queryIndexes }

// EndBuild ends the limits on the computation of the indexes in the first list.
func (v *View) EndBuild() {
	for _, x := range v.indexes {
		x.functions.EndBuild()
	}
}

// Refuse ends the computation of the indexes for a reason. Queries do not use them.
func (v *View) Refuse(reason error) {
	for _, x := range v.indexes {
		x.functions.Refuse(reason)
	}
}

// Refusals returns why indexes exceeded a limit in the first list, by name. Queries do not use these indexes.
func (v *View) Refusals() map[string]error {
	refusals := map[string]error{}
	for name, x := range v.indexes {
		if reason := x.functions.Refusal(x.name); reason != nil {
			refusals[name] = reason
		}
	}
	return refusals
}

// WithoutRefused returns a view without the indexes of Refusals. Call drop when it is in use.
func (v *View) WithoutRefused() (next *View, drop func()) {
	view, refused := *v, map[string]informerIndex{}
	view.indexes, view.queryIndexes = maps.Clone(v.indexes), slices.Clone(v.queryIndexes)
	for name := range v.Refusals() {
		refused[name] = v.indexes[name]
		delete(view.indexes, name)
		view.queryIndexes = slices.DeleteFunc(view.queryIndexes,
			func(index *indexers.Index) bool { return index.Name == name })
	}
	return &view, func() { v.removeIndexes(refused) }
}

// Release removes the indexes and releases the handle.
func (v *View) Release() {
	v.end()
	v.handle.Release()
}

// Reindexed adds the indexes that the view lacks, and returns a view with exactly the given indexes; see
// NewView. Call dropRemoved to remove the other indexes when the new view is in use, or undo to remove the
// added ones.
func (v *View) Reindexed(ctx context.Context, limits indexers.BuildLimits, indexes,
	queryIndexes []*indexers.Index) (next *View, undo, dropRemoved func(), err error) {
	var missing []*indexers.Index
	view := *v
	view.queryIndexes, view.indexes = queryIndexes, map[string]informerIndex{}
	for _, index := range indexes {
		if existing, ok := v.indexes[index.Name]; ok && existing.index.Same(index) {
			view.indexes[index.Name] = existing
		} else {
			missing = append(missing, index)
		}
	}
	added, err := v.addIndexes(ctx, limits, missing)
	if err != nil {
		return nil, nil, nil, err
	}
	removed := maps.Clone(v.indexes)
	maps.DeleteFunc(removed, func(name string, x informerIndex) bool { return view.indexes[name] == x })
	maps.Copy(view.indexes, added)
	return &view, func() { v.removeIndexes(added) }, func() { v.removeIndexes(removed) }, nil
}

// addIndexes adds indexes to the informer under unused names.
func (v *View) addIndexes(ctx context.Context, limits indexers.BuildLimits,
	indexes []*indexers.Index) (map[string]informerIndex, error) {
	added := map[string]informerIndex{}
	if len(indexes) == 0 {
		return added, nil
	}
	for n := 1; ; n++ {
		renamed, names := make([]*indexers.Index, len(indexes)), make([]string, len(indexes))
		for i, index := range indexes {
			names[i] = v.prefix + index.Name
			if n > 1 {
				names[i] += fmt.Sprintf("~%d", n)
			}
			renamed[i] = index.Renamed(names[i])
		}
		if v.hasIndexNamed(names) {
			continue
		}
		functions, used := indexers.CompileIndexes(renamed...), int64(0)
		for _, existing := range v.informer.Stats().Indexes {
			used += existing.Bytes
		}
		functions.LimitBuild(ctx, limits, used)
		err := v.handle.AddIndexes(functions)
		if limits == (indexers.BuildLimits{}) || v.informer.HasSynced() {
			functions.EndBuild() // otherwise the first list follows
		}
		if err != nil && v.hasIndexNamed(names) { // a concurrent caller took a name
			continue
		}
		for i, index := range indexes {
			added[index.Name] = informerIndex{names[i], functions, index}
		}
		return added, err
	}
}

func (v *View) removeIndexes(indexes map[string]informerIndex) {
	for _, x := range indexes {
		v.handle.RemoveIndexes(x.name)
	}
}

func (v *View) hasIndexNamed(names []string) bool {
	exists := v.informer.GetIndexer().GetIndexers()
	return slices.ContainsFunc(names, func(name string) bool { return exists[name] != nil })
}

// NameIn returns the name of an index in a snapshot of the informer; "" if the snapshot does not have it. A
// later index can have got the name of a removed one.
func (v *View) NameIn(snapshot *dynamicinformer.Snapshot, name string) string {
	if name == cache.NamespaceIndex {
		return name
	}
	index, declared := v.indexes[name]
	if !declared {
		return ""
	}
	found, exists := snapshot.Index(index.name)
	if !exists || index.functions != nil && (found.IndexSet() != dynamicinformer.IndexSet(index.functions) ||
		index.functions.Refusal(index.name) != nil) {
		return ""
	}
	return index.name
}

// Snapshot implements query.Source.
func (v *View) Snapshot() query.Snapshot {
	return viewSnapshot{informerSource{v.informer}.snapshot(), v}
}

// viewSnapshot is a snapshot of an informer with the indexes of a view under their names in the config.
type viewSnapshot struct {
	informerSnapshot
	view *View
}

// Declared returns the declarations of the indexes. Queriers use the indexes of the snapshot.
func (s viewSnapshot) Declared() []*indexers.Index { return s.view.queryIndexes }

// informerName returns the name of an index in the informer; "" if it does not have the index.
func (s viewSnapshot) informerName(index string) string { return s.view.NameIn(s.Snapshot, index) }

func (s viewSnapshot) Index(name string) (query.Index, bool) {
	informerName := s.informerName(name)
	if informerName == "" {
		return nil, false
	}
	return s.informerSnapshot.Index(informerName)
}

func (s viewSnapshot) IndexNames() []string {
	declared := naming.Texts(s.view.queryIndexes, func(index *indexers.Index) string { return index.Name })
	names := slices.DeleteFunc(append(declared, cache.NamespaceIndex),
		func(name string) bool { _, exists := s.Index(name); return !exists })
	slices.Sort(names)
	return names
}

// Skipped returns the number of values that an index has left out.
func (s viewSnapshot) Skipped(name string) uint64 {
	return s.informerSnapshot.Skipped(s.informerName(name))
}

// Dropped returns the number of values that an index has left out because of a limit.
func (s viewSnapshot) Dropped(name string) uint64 {
	return s.informerSnapshot.Dropped(s.informerName(name))
}
