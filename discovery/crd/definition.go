package crd

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/crdcache/crdcache/internal/naming"
)

// GVR is the resource of CustomResourceDefinitions.
var GVR = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// Definition contains the fields of a CustomResourceDefinition that crdcache uses.
type Definition struct {
	// Name is the object's name, such as "certificates.cert-manager.io".
	Name            string
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Deleting is true after deletion was requested. Objects are served until the last finalizer is removed.
	Deleting bool

	Group string
	// Names are the names in effect: the accepted ones of the status, or else the desired ones of the spec.
	Names      Names
	Namespaced bool
	// Versions are in the order of the spec.
	Versions []Version
	// StoredVersions are the versions that objects in etcd may have.
	StoredVersions []string
	// ConversionWebhook is true if a webhook, which can fail, converts between versions.
	ConversionWebhook bool

	// Established is true when the server serves the type.
	Established bool
	// NamesAccepted is false when another CRD of the group has one of the names.
	NamesAccepted bool
	// Terminating is true while the server deletes the objects of the type.
	Terminating bool
}

// Names are the names of a type.
type Names struct {
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular,omitempty"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind,omitempty"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
}

// Version is one version of a type.
type Version struct {
	Name string
	// Served versions can be read and written; others are only kept for conversion.
	Served bool
	// Storage is true for the version in which objects are written to etcd.
	Storage bool
	// Deprecated versions make the server add a warning to each response.
	Deprecated         bool
	DeprecationWarning string
	// Subresources are "status" and "scale", if they exist.
	Subresources []string

	// Schema is nil if the version has none, and in definitions read without schemas.
	Schema *Schema
	// Columns are the additional printer columns.
	Columns []Column
	// SelectableFields are the JSON paths that a field selector may use, ".spec.issuerRef.name".
	SelectableFields []string
}

// Column is an additional printer column, as kubectl get shows it.
type Column struct {
	Name string `json:"name"`
	// Type is integer, number, string, boolean or date.
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	// Priority above 0 is only shown in wide output.
	Priority int32  `json:"priority,omitempty"`
	JSONPath string `json:"jsonPath"`
}

// GroupResource returns the type without a version.
func (d *Definition) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: d.Group, Resource: d.Names.Plural}
}

// Version returns the version with that name.
func (d *Definition) Version(name string) (Version, bool) {
	return naming.Find(d.Versions, func(v Version) bool { return v.Name == name })
}

// ServedVersions returns the names of the served versions in the server's order of preference: stable
// ones before beta before alpha, higher numbers first.
func (d *Definition) ServedVersions() []string {
	var out []string
	for _, v := range d.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return out
}
