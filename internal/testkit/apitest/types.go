package apitest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/readapi"
)

// Type is a type that a server serves. Several of one group and resource are its versions: the same objects, with
// another apiVersion.
type Type struct {
	GVR                    schema.GroupVersionResource
	Kind                   string
	Singular               string
	Namespaced             bool
	ShortNames, Categories []string
}

// Types of the core group that tests ask for.
var (
	ConfigMaps = Type{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	Namespaces = Type{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
)

// serveTypes defines the types, each with its versions in the order in which they are given.
func serveTypes(t testing.TB, storage *readapi.Storage, types []Type) {
	t.Helper()
	versions := map[schema.GroupResource][]readapi.Version{}
	for _, typ := range types {
		gr := typ.GVR.GroupResource()
		versions[gr] = append(versions[gr], readapi.Version{Name: typ.GVR.Version})
		err := storage.SetType(readapi.Type{
			Group: gr.Group, Namespaced: typ.Namespaced, Versions: versions[gr],
			Names: crd.Names{Plural: gr.Resource, Singular: typ.Singular, Kind: typ.Kind, ShortNames: typ.ShortNames, Categories: typ.Categories},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
