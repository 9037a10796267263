package readapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// Type describes a type of objects and how it is served.
type Type struct {
	// Group is empty for the core group.
	Group string
	// Names has the names as in a CRD. Plural and Kind are required. Singular defaults to the lower-case
	// kind, ListKind to the kind followed by "List".
	Names crd.Names
	// Namespaced is false for cluster-scoped types.
	Namespaced bool
	// Versions are the served versions in order of preference. At least one is required.
	Versions []Version
	// NeedsConversion means that the versions need a conversion webhook. An object can be read only in the
	// version in which it is stored. Other versions fail like an unreachable webhook.
	NeedsConversion bool
	// ServesUnconverted means that each object is read in the version in which it is stored, whichever
	// version a request names. See Versioned.
	ServesUnconverted bool
	// Custom means that a CustomResourceDefinition defines the type. A kube-apiserver answers requests for
	// unknown types differently in groups with built-in types.
	Custom bool

	writable bool // for discovery
}

// Version is a version of a type.
type Version struct {
	// Name is the version without group, such as "v1".
	Name string
	// Deprecated adds a Warning header to answers. DeprecationWarning is its text, or empty for the default
	// text.
	Deprecated         bool
	DeprecationWarning string
	// Subresources are the readable subresources. Only "status" is supported.
	Subresources []string
	// UnsupportedSubresources are the subresources of a kube-apiserver that are not supported, such as
	// "scale". A Writer's handler answers them with 501.
	UnsupportedSubresources []string
	// Columns are the table columns after the name. Default: the age.
	Columns []crd.Column
	// SelectableFields are the paths for field selectors in addition to name and namespace, such as
	// ".spec.host".
	SelectableFields []string
	// Schema is an OpenAPI v3 schema. Objects that are stored in another version lose fields that are not in
	// it. Default: an object with any fields.
	Schema json.RawMessage

	parsedSchema *crd.Schema // parsed from Schema
}

// GroupResource returns the group and the plural.
func (t Type) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: t.Group, Resource: t.Names.Plural}
}

// GroupKind returns the group and the kind.
func (t Type) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: t.Group, Kind: t.Names.Kind}
}

// Version returns a served version, or nil.
func (t *Type) Version(name string) *Version {
	i := slices.IndexFunc(t.Versions, func(v Version) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Versions[i]
}

// TypeOf returns the type that a CustomResourceDefinition in JSON defines. It fails if no version is served.
func TypeOf(definition []byte) (Type, error) {
	d, err := crd.Decode(definition)
	if err != nil {
		return Type{}, err
	}
	var schemas struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(definition, &schemas); err != nil {
		return Type{}, err
	}
	t := Type{Group: d.Group, Names: d.Names, Namespaced: d.Namespaced, NeedsConversion: d.ConversionWebhook}
	for _, name := range d.ServedVersions() {
		v, _ := d.Version(name)
		served := Version{
			Name: name, Deprecated: v.Deprecated, DeprecationWarning: v.DeprecationWarning,
			Columns: v.Columns, SelectableFields: v.SelectableFields,
		}
		if slices.Contains(v.Subresources, "status") {
			served.Subresources = []string{"status"}
		}
		if slices.Contains(v.Subresources, "scale") {
			served.UnsupportedSubresources = []string{"scale"}
		}
		for _, s := range schemas.Spec.Versions {
			if s.Name == name {
				served.Schema = s.Schema.OpenAPIV3Schema
			}
		}
		t.Versions = append(t.Versions, served)
	}
	return t, t.Complete()
}

// Complete validates a type, sets the defaults of its names, and parses its schemas. A Backend calls it for a
// type with a schema before the type is served.
func (t *Type) Complete() error {
	var problems []error
	if t.Names.Plural == "" || t.Names.Kind == "" {
		problems = append(problems, errors.New("plural or kind is missing"))
	}
	if strings.ContainsAny(t.Names.Plural+t.Group, "/?") {
		problems = append(problems, fmt.Errorf("%s cannot be part of a path", t.GroupResource()))
	}
	if len(t.Versions) == 0 {
		problems = append(problems, errors.New("no version is served"))
	}
	for _, v := range t.Versions {
		if v.Name == "" || strings.ContainsAny(v.Name, "/?") {
			problems = append(problems, fmt.Errorf("%q is not a valid version", v.Name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("type %s: %w", t.GroupResource(), err)
	}
	t.Names.Singular = cmp.Or(t.Names.Singular, strings.ToLower(t.Names.Kind))
	if t.Names.ListKind == "" {
		t.Names.ListKind = t.Names.Kind + "List"
	}
	t.Versions = slices.Clone(t.Versions)
	for i := range t.Versions {
		v := &t.Versions[i]
		if len(v.Schema) == 0 || v.parsedSchema != nil {
			continue
		}
		if err := json.Unmarshal(v.Schema, &v.parsedSchema); err != nil {
			return fmt.Errorf("type %s: the schema of %s: %w", t.GroupResource(), v.Name, err)
		}
		if err := normalizeDefaults(v.parsedSchema); err != nil {
			return fmt.Errorf("type %s: the defaults of %s: %w", t.GroupResource(), v.Name, err)
		}
	}
	return nil
}
