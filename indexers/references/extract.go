package references

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/crdcache/crdcache/indexers"
)

// Owners is the name of owner references, which all objects have. They refer to a UID.
const Owners = "owners"

// extractor reads the references of objects.
type extractor struct {
	names      []string // of references, in the order of functions
	references []*indexers.Reference
	functions  *indexers.Functions
}

func newExtractor(declared []*indexers.Reference) extractor {
	x := extractor{references: append([]*indexers.Reference{indexers.OwnerReferences()}, declared...)}
	indexes := make([]*indexers.Index, len(x.references))
	for i, r := range x.references {
		indexes[i] = r.Index
		x.names = append(x.names, r.Name)
	}
	x.functions = indexers.CompileIndexes(indexes...)
	return x
}

type extractedObject struct {
	objectKey
	objectState
}

// readMetadata reads the metadata of an object. It copies texts, so that they do not pin the stored object.
func readMetadata(obj any) (extractedObject, bool) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return extractedObject{}, false
	}
	return extractedObject{
		objectKey{strings.Clone(m.GetNamespace()), strings.Clone(m.GetName())},
		objectState{uid: strings.Clone(string(m.GetUID()))},
	}, true
}

// read returns the data of an object for the graph.
func (x extractor) read(obj any) (extractedObject, bool) {
	object, ok := readMetadata(obj)
	if !ok {
		return object, false
	}
	for i, keys := range x.functions.StoredKeys(obj) {
		for _, key := range keys {
			to := Object(x.references[i].Target(key))
			if to.Name != "" {
				object.outgoing = append(object.outgoing, edgeID{x.names[i], to})
			}
		}
	}
	return object, true
}
