package bind

import (
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// bound is an index in an informer.
type bound struct {
	// name is what the informer calls it.
	name string
	// functions compute it, and count what they meet.
	functions *indexers.Functions
}

// owned are functions under the names that their indexes have in an informer. Informers are shared, so those
// are names of the owner: that of the resource comes first.
type owned struct {
	*indexers.Functions
	names []string
}

// Names implements dynamicinformer.IndexSet.
func (o *owned) Names() []string { return o.names }

// Indexers implements dynamicinformer.IndexSet.
func (o *owned) Indexers() cache.Indexers {
	plain := o.Functions.Indexers()
	out := make(cache.Indexers, len(plain))
	for i, name := range o.Functions.Names() {
		out[o.names[i]] = plain[name]
	}
	return out
}

// Dropped counts the values that an index has left out for a limit, by its name in the informer.
func (o *owned) Dropped(name string) uint64 {
	if i := slices.Index(o.names, name); i >= 0 {
		return o.Functions.Dropped(o.Functions.Names()[i])
	}
	return 0
}

// addIndexes adds indexes of a resource to an informer, under names that nothing has there.
func addIndexes(handle *dynamicinformer.Handle, resource string,
	indexes []*indexers.Index) (map[string]bound, error) {
	out := map[string]bound{}
	if len(indexes) == 0 {
		return out, nil
	}
	set := &owned{Functions: indexers.CompileIndexes(indexes...), names: make([]string, len(indexes))}
	for n := 1; ; n++ {
		for i, index := range indexes {
			set.names[i] = resource + "/" + index.Name
			if n > 1 {
				set.names[i] += fmt.Sprintf("~%d", n)
			}
		}
		if taken(handle.Informer(), set.names) {
			continue
		}
		err := handle.AddIndexes(set)
		if err == nil {
			break
		}
		if !taken(handle.Informer(), set.names) { // by another who was faster
			return nil, err
		}
	}
	for i, index := range indexes {
		out[index.Name] = bound{set.names[i], set.Functions}
	}
	return out, nil
}

// taken reports whether an informer has an index of one of the names.
func taken(informer *dynamicinformer.Informer, names []string) bool {
	there := informer.GetIndexer().GetIndexers()
	return slices.ContainsFunc(names, func(name string) bool { return there[name] != nil })
}
