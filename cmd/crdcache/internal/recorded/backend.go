package recorded

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/snapshot"
)

// backend is a file as a readapi.Backend.
type backend struct {
	file        *snapshot.File
	types       []readapi.Type
	collections map[schema.GroupResource]*collection
}

func newBackend(file *snapshot.File) *backend {
	b := &backend{file: file, collections: map[schema.GroupResource]*collection{}}
	for _, saved := range file.Contents().Types {
		b.types = append(b.types, typeOf(saved.Type))
		gr := saved.GVR().GroupResource()
		b.collections[gr] = newCollection(b, file.Objects(gr))
	}
	return b
}

// ServedTypes implements readapi.Backend. These types are without what only their definitions tell.
func (b *backend) ServedTypes() (types []readapi.Type, generation uint64) { return b.types, 1 }

// Collection implements readapi.Backend.
func (b *backend) Collection(gr schema.GroupResource) readapi.Collection {
	if c := b.collections[gr]; c != nil {
		return c
	}
	return nil
}

// typeOf is a type as discovery tells of it.
func typeOf(t snapshot.Type) readapi.Type {
	served := readapi.Type{
		Group: t.Group, Namespaced: t.Namespaced,
		Names: crd.Names{
			Plural: t.Resource, Singular: t.Singular, Kind: t.Kind, ListKind: t.Kind + "List",
			ShortNames: t.ShortNames, Categories: t.Categories,
		},
		Versions: []readapi.Version{{Name: t.Version}},
	}
	for _, version := range t.Versions {
		if version != t.Version {
			served.Versions = append(served.Versions, readapi.Version{Name: version})
		}
	}
	return served
}

// defined is the type as its CustomResourceDefinition defines it; false where the file has none.
func (b *backend) defined(t snapshot.Type) (readapi.Type, bool) {
	definitions := b.file.Objects(crd.GVR.GroupResource())
	if definitions == nil || !strings.Contains(t.Group, ".") {
		return readapi.Type{}, false
	}
	record, ok, err := definitions.Get(t.GVR().GroupResource().String())
	if !ok || err != nil {
		return readapi.Type{}, false
	}
	text, err := record.AppendObject(nil, crd.GVR.GroupVersion().String())
	if err != nil {
		return readapi.Type{}, false
	}
	served, err := readapi.TypeOf(text)
	served.Custom = true
	return served, err == nil
}
