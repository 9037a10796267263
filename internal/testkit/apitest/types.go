package apitest

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
)

// Type is a type that a server serves. Several Types with the same group and resource are versions of one
// type: they serve the same objects, each with its own apiVersion.
type Type struct {
	GVR                    schema.GroupVersionResource
	Kind                   string
	Singular               string
	Namespaced             bool
	ShortNames, Categories []string
}

// Types of the core group that tests use.
var (
	ConfigMaps = Type{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Kind: "ConfigMap", Namespaced: true}
	Namespaces = Type{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		Kind: "Namespace"}
)

// ApplyJSON stores an object in JSON.
func ApplyJSON(storage *apiserver.Storage, text []byte) error {
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &u.Object); err != nil {
		return err
	}
	_, err := storage.Apply(u)
	return err
}

// definitions returns the types as a cluster serves them, each with its versions in the given order.
func definitions(types []Type) []readapi.Type {
	var definitions []readapi.Type
	for _, t := range types {
		version := readapi.Version{Name: t.GVR.Version}
		index := slices.IndexFunc(definitions,
			func(d readapi.Type) bool { return d.GroupResource() == t.GVR.GroupResource() })
		if index >= 0 {
			definitions[index].Versions = append(definitions[index].Versions, version)
			continue
		}
		definitions = append(definitions, readapi.Type{
			Group: t.GVR.Group, Namespaced: t.Namespaced, Versions: []readapi.Version{version},
			Names: crd.Names{Plural: t.GVR.Resource, Singular: t.Singular, Kind: t.Kind,
				ShortNames: t.ShortNames, Categories: t.Categories},
		})
	}
	return definitions
}
