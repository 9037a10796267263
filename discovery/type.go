package discovery

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/discovery/crd"
)

// Source is the source of information about a type.
type Source string

const (
	// FromCRD types come from the watch on CustomResourceDefinitions.
	FromCRD Source = "CustomResourceDefinition"
	// FromDiscovery types come from discovery: built-in types, types of aggregated API servers, and every
	// type while CustomResourceDefinitions may not be read.
	FromDiscovery Source = "Discovery"
)

// Type describes one type in all its versions. Treat it as read-only.
type Type struct {
	GroupResource schema.GroupResource
	Kind          string
	Singular      string
	ShortNames    []string
	Categories    []string
	Scope         Scope
	// Versions are the served versions, the most preferred first, and then the others.
	Versions []TypeVersion
	// StoredVersions are the versions that objects in etcd may have; only set for types from a CRD.
	StoredVersions []string
	// UID is the UID of the CRD, empty if unknown. Another UID means another type.
	UID types.UID
	// Generation counts the changes of the CRD's spec, including its schemas; 0 if unknown.
	Generation int64
	Source     Source
	// Established is false for a CRD that the server does not serve yet.
	Established bool
	// Terminating is true for a CRD that is being deleted while its objects still exist.
	Terminating bool
	// ConversionWebhook is true when a webhook converts between versions.
	ConversionWebhook bool
}

// TypeVersion is one version of a Type.
type TypeVersion struct {
	Name string
	// Served is false for versions that only exist in etcd.
	Served bool
	// Storage is true for the version that is written to etcd; only set for types from a CRD.
	Storage bool
	// Kind is the kind of the objects. It is the same in all versions except for unusual aggregated APIs.
	Kind schema.GroupVersionKind
	// Verbs are the supported verbs.
	Verbs        []string
	Subresources []string
}

// ServedVersions returns the names of the served versions, the most preferred first.
func (t Type) ServedVersions() []string {
	var out []string
	for _, v := range t.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

// The verbs that every API server supports for custom resources. They do not depend on the CRD. Objects of a
// terminating type cannot be created.
var (
	customVerbs      = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	terminatingVerbs = []string{"delete", "deletecollection", "get", "list", "watch"}
)

func typeOfCRD(d *crd.Definition) Type {
	t := Type{
		GroupResource: d.GroupResource(), Kind: d.Names.Kind, Singular: d.Names.Singular,
		ShortNames: d.Names.ShortNames, Categories: d.Names.Categories, Scope: Cluster,
		StoredVersions: d.StoredVersions, UID: d.UID, Generation: d.Generation, Source: FromCRD,
		Established: d.Established, Terminating: d.Terminating || d.Deleting,
		ConversionWebhook: d.ConversionWebhook,
	}
	if d.Namespaced {
		t.Scope = Namespaced
	}
	t.Singular = cmp.Or(t.Singular, strings.ToLower(t.Kind))
	verbs := customVerbs
	if d.Terminating {
		verbs = terminatingVerbs
	}
	order := d.ServedVersions()
	for _, v := range d.Versions {
		if !v.Served {
			order = append(order, v.Name)
		}
	}
	for _, name := range order {
		v, _ := d.Version(name)
		tv := TypeVersion{
			Name: name, Served: v.Served, Storage: v.Storage, Subresources: v.Subresources,
			Kind: schema.GroupVersionKind{Group: d.Group, Version: name, Kind: d.Names.Kind},
		}
		if v.Served {
			tv.Verbs = verbs
		}
		t.Versions = append(t.Versions, tv)
	}
	return t
}

func typesOf(resources []Resource) map[schema.GroupResource]Type {
	out := make(map[schema.GroupResource]Type, len(resources))
	for _, r := range resources {
		gr := r.GVR.GroupResource()
		t, ok := out[gr]
		if !ok {
			t = Type{
				GroupResource: gr, Kind: r.GVK.Kind, Singular: r.Singular, ShortNames: r.ShortNames,
				Categories: r.Categories, Scope: r.Scope, Source: FromDiscovery, Established: true,
			}
		}
		t.Versions = append(t.Versions, TypeVersion{
			Name: r.GVR.Version, Served: true, Kind: r.GVK, Verbs: r.Verbs, Subresources: r.Subresources,
		})
		out[gr] = t
	}
	return out
}
