package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Scope is the scope of a type's objects.
type Scope string

const (
	// Namespaced types have objects in namespaces.
	Namespaced Scope = "Namespaced"
	// Cluster types have objects outside of any namespace.
	Cluster Scope = "Cluster"
)

// Resource is one version of one type as an API server serves it. Its slices are shared and read-only.
type Resource struct {
	GVR schema.GroupVersionResource
	GVK schema.GroupVersionKind
	// Scope is Namespaced or Cluster.
	Scope Scope
	// Singular is the lower-case singular name. If the server reports none, it is the lower-case kind.
	Singular string
	// Verbs are the verbs the server supports, as it lists them.
	Verbs []string
	// ShortNames are the abbreviations, such as "po".
	ShortNames []string
	// Categories are the groupings the type is part of, such as "all".
	Categories []string
	// Subresources are names below an object, such as "status" or "log".
	Subresources []string
	// Preferred is true for the version that is used if a name has none: the most preferred version of the
	// group that serves this type.
	Preferred bool
	// ServedVersions lists every version that serves this type, the preferred one first.
	ServedVersions []string
	// Stale is true if the last round could not confirm the type: its group version failed or was stale.
	Stale bool
	// CRDUID is the UID of the type's CustomResourceDefinition. It is only set by a Tracker that watches
	// CRDs, because discovery does not report it.
	CRDUID types.UID
	// CRDGeneration counts the changes of the CRD, as Type.Generation.
	CRDGeneration int64
}

// HasVerbs reports whether the server supports all of verbs for this type.
func (r Resource) HasVerbs(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains(r.Verbs, v) })
}

// MissingVerbs says which of the verbs the type lacks, and which it supports.
func (r Resource) MissingVerbs(verbs ...string) string {
	missing := slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return r.HasVerbs(verb) })
	text := "does not support the verb " + strings.Join(missing, " and ")
	if len(r.Verbs) == 0 {
		return text + ": the server lists no verbs for it"
	}
	return text + ", only " + strings.Join(r.Verbs, ", ")
}

// Watchable reports whether the type can be listed and watched, as informers require.
func (r Resource) Watchable() bool { return r.HasVerbs("list", "watch") }

// String returns a name that resolves to exactly this resource: "certificates.v1.cert-manager.io", or
// "pods.v1." for the core group, with an empty group after the last dot.
func (r Resource) String() string { return r.GVR.Resource + "." + r.GVR.Version + "." + r.GVR.Group }

// SkipReason is the reason why a type is excluded from a wildcard or category.
type SkipReason string

const (
	// SkipSubresource marks a subresource, which cannot be listed.
	SkipSubresource SkipReason = "subresource"
	// SkipNoList marks a type that cannot be listed.
	SkipNoList SkipReason = "no list verb"
	// SkipNoWatch marks a type that can be listed but not watched.
	SkipNoWatch SkipReason = "no watch verb"
)

// Skip is a type that matched a wildcard or category and was excluded.
type Skip struct {
	// GVR names the type. For a subresource Resource is "pods/log".
	GVR    schema.GroupVersionResource
	Reason SkipReason
	// Resource is the type, or the parent of a subresource.
	Resource Resource
}

// Resolution is the result of resolving a name.
type Resolution struct {
	// Resources has one entry, or one per type for a category or wildcard, in the server's preference.
	Resources []Resource
	// Alternatives are other types that match the name with lower priority.
	Alternatives []Resource
	// Skipped are members of a category or wildcard that cannot be listed and watched. It is empty for a
	// single type, which is returned whatever its verbs are.
	Skipped []Skip
	// FailedGroupVersions are the group versions with failed or stale discovery. Their earlier types are
	// members of a wildcard or category, marked Stale; there may be others.
	FailedGroupVersions []GroupFailure
}

// skipReason returns the reason why r is excluded from wildcards and categories, or "".
func skipReason(r Resource) SkipReason {
	switch {
	case !r.HasVerbs("list"):
		return SkipNoList
	case !r.HasVerbs("watch"):
		return SkipNoWatch
	}
	return ""
}
