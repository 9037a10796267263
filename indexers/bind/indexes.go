package bind

import (
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// informerIndex is an index in an informer.
type informerIndex struct {
	// name is the name in the informer.
	name string
	// functions compute the index and count.
	functions *indexers.Functions
}

// renamedFunctions are functions under the names that their indexes have in a shared informer: prefixed with
// the name of the resource.
type renamedFunctions struct {
	*indexers.Functions
	names []string
}

// Names implements dynamicinformer.IndexSet.
func (o *renamedFunctions) Names() []string { return o.names }

// Indexers implements dynamicinformer.IndexSet.
func (o *renamedFunctions) Indexers() cache.Indexers {
	plain := o.Functions.Indexers()
	out := make(cache.Indexers, len(plain))
	for i, name := range o.Functions.Names() {
		out[o.names[i]] = plain[name]
	}
	return out
}

// Dropped returns the number of values left out because of a limit, by the index name in the informer.
func (o *renamedFunctions) Dropped(name string) uint64 {
	if i := slices.Index(o.names, name); i >= 0 {
		return o.Functions.Dropped(o.Functions.Names()[i])
	}
	return 0
}

// addIndexes adds the indexes of a resource to an informer under unused names.
func addIndexes(handle *dynamicinformer.Handle, resource string,
	indexes []*indexers.Index) (map[string]informerIndex, error) {
	out := map[string]informerIndex{}
	if len(indexes) == 0 {
		return out, nil
	}
	set := &renamedFunctions{Functions: indexers.CompileIndexes(indexes...),
		names: make([]string, len(indexes))}
	for n := 1; ; n++ {
		for i, index := range indexes {
			set.names[i] = resource + "/" + index.Name
			if n > 1 {
				set.names[i] += fmt.Sprintf("~%d", n)
			}
		}
		if hasIndexNamed(handle.Informer(), set.names) {
			continue
		}
		err := handle.AddIndexes(set)
		if err == nil {
			break
		}
		if !hasIndexNamed(handle.Informer(), set.names) { // a concurrent caller took a name
			return nil, err
		}
	}
	for i, index := range indexes {
		out[index.Name] = informerIndex{set.names[i], set.Functions}
	}
	return out, nil
}

func hasIndexNamed(informer *dynamicinformer.Informer, names []string) bool {
	exists := informer.GetIndexer().GetIndexers()
	return slices.ContainsFunc(names, func(name string) bool { return exists[name] != nil })
}
