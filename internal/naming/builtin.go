package naming

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BuiltinType is a type that every cluster has.
type BuiltinType struct {
	Group, Version, Plural, Kind string
	shortNames                   string // separated by spaces
	flags                        TypeFlags
	subresources                 string // other than status, separated by spaces
}

// TypeFlags describe how a type is served and written.
type TypeFlags int

// The flags of types.
const (
	Namespaced TypeFlags = 1 << iota
	InCategoryAll
	InCategoryAPIExtensions
	HasStatus           // has the status subresource
	HasGeneration       // has a generation
	UnconditionalUpdate // an update without a resource version is allowed
	CreateOnUpdate      // an update creates a missing object
	AnyName
)

const eventFields = ".involvedObject.kind .involvedObject.namespace .involvedObject.name .involvedObject.uid " +
	".involvedObject.apiVersion .involvedObject.resourceVersion .involvedObject.fieldPath .reason .type .reportingComponent"

// selectableFields are the fields for field selectors in addition to name and namespace.
var selectableFields = map[schema.GroupResource]string{
	{Resource: "events"}:     eventFields,
	{Resource: "namespaces"}: ".status.phase",
	{Resource: "nodes"}:      ".spec.unschedulable",
	{Resource: "pods"}: ".spec.nodeName .spec.restartPolicy .spec.schedulerName .spec.serviceAccountName .status.phase " +
		".status.podIP .status.nominatedNodeName",
	{Resource: "replicationcontrollers"}:                                   ".status.replicas",
	{Resource: "secrets"}:                                                  ".type",
	{Resource: "services"}:                                                 ".spec.clusterIP .spec.type",
	{Group: "apps", Resource: "replicasets"}:                               ".status.replicas",
	{Group: "batch", Resource: "jobs"}:                                     ".status.successful",
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: ".spec.signerName",
	{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}:        ".spec.signerName",
	{Group: "events.k8s.io", Resource: "events"}:                           eventFields,
}

func (t BuiltinType) Has(f TypeFlags) bool { return t.flags&f != 0 }

func (t BuiltinType) ShortNames() []string { return strings.Fields(t.shortNames) }

// Subresources returns the subresources other than status.
func (t BuiltinType) Subresources() []string { return strings.Fields(t.subresources) }

func (t BuiltinType) Categories() []string {
	switch {
	case t.Has(InCategoryAll):
		return []string{"all"}
	case t.Has(InCategoryAPIExtensions):
		return []string{"api-extensions"}
	}
	return nil
}

// SelectableFields returns the paths of the fields for field selectors, other than name and namespace.
func (t BuiltinType) SelectableFields() []string {
	return strings.Fields(selectableFields[schema.GroupResource{Group: t.Group, Resource: t.Plural}])
}

// FindBuiltinByName returns the type of a plural, singular or short name as tools write it, such as "pvs",
// "storage-classes" or "ingress".
func FindBuiltinByName(name string) (BuiltinType, bool) {
	name = strings.ReplaceAll(name, "-", "")
	return findBuiltin(func(t BuiltinType) bool {
		return name == t.Plural || name == strings.ToLower(t.Kind) || slices.Contains(t.ShortNames(),
			strings.TrimSuffix(name, "s"))
	})
}

// FindBuiltin returns the type of a group and kind or, with an empty kind, plural name.
func FindBuiltin(group, kind, plural string) (BuiltinType, bool) {
	return findBuiltin(func(t BuiltinType) bool {
		return t.Group == group && (kind == "" && t.Plural == plural || kind != "" && t.Kind == kind)
	})
}

func findBuiltin(matches func(BuiltinType) bool) (t BuiltinType, ok bool) {
	if i := slices.IndexFunc(BuiltinTypes, matches); i >= 0 {
		return BuiltinTypes[i], true
	}
	return t, false
}

// GuessPlural returns the plural that tools like controller-gen give to a kind by default. It replaces
// apimachinery's UnsafeGuessKindToResource, which makes gatewaies of Gateway and meshs of Mesh.
func GuessPlural(kind string) string {
	name := strings.ToLower(kind)
	hasSuffix := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
	}
	switch {
	case hasSuffix("endpoints", "metadata"):
		return name
	case hasSuffix("ay", "ey", "iy", "oy", "uy"):
		return name + "s"
	case hasSuffix("y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case hasSuffix("s", "x", "ch", "sh"):
		return name + "es"
	}
	return name + "s"
}
