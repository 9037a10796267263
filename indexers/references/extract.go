package references

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/crdcache/crdcache/indexers"
)

// Owners is the name of references to owners, which all objects have. They are to objects of one UID.
const Owners = "owners"

// extractor reads what objects refer to.
type extractor struct {
	names      []string // of references, in the order of functions
	references []*indexers.Reference
	functions  *indexers.Functions
}

func newExtractor(declared []*indexers.Reference) extractor {
	x := extractor{references: append([]*indexers.Reference{indexers.OwnerReferences()}, declared...)}
	all := make([]*indexers.Index, len(x.references))
	for i, r := range x.references {
		all[i] = r.Index
		x.names = append(x.names, r.Name)
	}
	x.functions = indexers.CompileIndexes(all...)
	return x
}

// identified is an object with its place.
type identified struct {
	place
	holding
}

// identify reads the metadata of an object. The texts are its own, which may be parts of what is kept of the
// object.
func identify(obj any) (identified, bool) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return identified{}, false
	}
	return identified{
		place{strings.Clone(m.GetNamespace()), strings.Clone(m.GetName())},
		holding{uid: strings.Clone(string(m.GetUID()))},
	}, true
}

// read gives what is to be kept of an object.
func (x extractor) read(obj any) (identified, bool) {
	object, ok := identify(obj)
	if !ok {
		return object, false
	}
	for i, keys := range x.functions.StoredKeys(obj) {
		for _, key := range keys {
			to := Object(x.references[i].Target(key))
			if to.Name != "" {
				object.out = append(object.out, edgeID{x.names[i], to})
			}
		}
	}
	return object, true
}
