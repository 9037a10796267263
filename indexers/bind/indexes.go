package bind

import (
	"fmt"
	"slices"

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

// addIndexes adds the indexes of a resource to an informer under unused names. They begin with the name of
// the resource, because resources of one type share an informer.
func addIndexes(handle *dynamicinformer.Handle, resource string,
	indexes []*indexers.Index) (map[string]informerIndex, error) {
	out := map[string]informerIndex{}
	if len(indexes) == 0 {
		return out, nil
	}
	for n := 1; ; n++ {
		renamed, names := make([]*indexers.Index, len(indexes)), make([]string, len(indexes))
		for i, index := range indexes {
			names[i] = resource + "/" + index.Name
			if n > 1 {
				names[i] += fmt.Sprintf("~%d", n)
			}
			renamed[i] = index.Renamed(names[i])
		}
		if hasIndexNamed(handle.Informer(), names) {
			continue
		}
		functions := indexers.CompileIndexes(renamed...)
		err := handle.AddIndexes(functions)
		if err != nil && hasIndexNamed(handle.Informer(), names) { // a concurrent caller took a name
			continue
		}
		for i, index := range indexes {
			out[index.Name] = informerIndex{names[i], functions}
		}
		return out, err
	}
}

func hasIndexNamed(informer *dynamicinformer.Informer, names []string) bool {
	exists := informer.GetIndexer().GetIndexers()
	return slices.ContainsFunc(names, func(name string) bool { return exists[name] != nil })
}
