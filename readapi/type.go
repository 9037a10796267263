package readapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// Type is a type of objects and how it is served.
type Type struct {
	// Group is empty for the core group.
	Group string
	// Names are the names of the type. Plural and Kind are required; Singular defaults to the lower-case
	// kind, ListKind to the kind with List at its end.
	Names crd.Names
	// Namespaced types have objects in namespaces only, others outside of them only.
	Namespaced bool
	// Versions are the served versions, in order of preference. At least one is required.
	Versions []Version
	// Converted says that versions differ by more than their name, so that an object can only be read in the
	// version that it was stored in: what else would take is a conversion webhook. Reading it in another one
	// fails as with a webhook that is out of reach.
	Converted bool
	// Custom says that a CustomResourceDefinition defines the type. Of groups that have no other type a
	// kube-apiserver knows nothing, so that it answers otherwise to what is not there. A Storage sets it.
	Custom bool
	// Rules are how its objects are written, for types that are built into a kube-apiserver.
	Rules Rules

	writable bool // in an answer of discovery
}

// Version is one version of a type.
type Version struct {
	// Name is what follows the group, "v1".
	Name string
	// Deprecated versions are answered with a warning: DeprecationWarning, or one that says just that.
	Deprecated         bool
	DeprecationWarning string
	// Subresources that read like the object itself. "status" is the only one.
	Subresources []string
	// Unserved are the subresources that a kube-apiserver has for the type and that are not served here, such
	// as "scale". With HandlerOptions.Writes, requests for them are refused with an error that says so; for
	// all others there is nothing.
	Unserved []string
	// Columns are shown in tables after the name. Default: the age.
	Columns []crd.Column
	// SelectableFields are the paths that field selectors may use, beside name and namespace: ".spec.host".
	SelectableFields []string
	// Schema is an OpenAPI v3 schema, for kubectl explain. Default: an object with any fields.
	// Objects that were stored in another version lose what it does not have.
	Schema json.RawMessage

	structure *crd.Schema // of Schema
}

// GroupResource names the type without version.
func (t Type) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: t.Group, Resource: t.Names.Plural}
}

// GroupKind names the kind without version.
func (t Type) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: t.Group, Kind: t.Names.Kind}
}

// version returns the version of that name, or nil when it is not served.
func (t *Type) version(name string) *Version {
	i := slices.IndexFunc(t.Versions, func(v Version) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Versions[i]
}

// complete fills in defaults and refuses what cannot be served.
func (t *Type) complete() error {
	var problems []error
	if t.Names.Plural == "" || t.Names.Kind == "" {
		problems = append(problems, errors.New("the plural or the kind is missing"))
	}
	if strings.ContainsAny(t.Names.Plural+t.Group, "/?") {
		problems = append(problems, fmt.Errorf("%s cannot be part of a path", t.GroupResource()))
	}
	if len(t.Versions) == 0 {
		problems = append(problems, errors.New("it has no served version"))
	}
	for _, v := range t.Versions {
		if v.Name == "" || strings.ContainsAny(v.Name, "/?") {
			problems = append(problems, fmt.Errorf("%q cannot be a version", v.Name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("type %s: %w", t.GroupResource(), err)
	}
	if t.Names.Singular == "" {
		t.Names.Singular = strings.ToLower(t.Names.Kind)
	}
	if t.Names.ListKind == "" {
		t.Names.ListKind = t.Names.Kind + "List"
	}
	t.Versions = slices.Clone(t.Versions)
	for i := range t.Versions {
		v := &t.Versions[i]
		if len(v.Schema) == 0 {
			continue
		}
		if err := json.Unmarshal(v.Schema, &v.structure); err != nil {
			return fmt.Errorf("type %s: the schema of %s: %w", t.GroupResource(), v.Name, err)
		}
		if err := normalizeDefaults(v.structure); err != nil {
			return fmt.Errorf("type %s: the defaults of %s: %w", t.GroupResource(), v.Name, err)
		}
	}
	return nil
}
