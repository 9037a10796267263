package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Scope says whether objects of a type live in namespaces.
type Scope string

const (
	// Namespaced types have objects in namespaces.
	Namespaced Scope = "Namespaced"
	// Cluster types have objects outside of any namespace.
	Cluster Scope = "Cluster"
)

// Resource is one version of one type as an API server serves it.
// The slices are shared between callers: treat a Resource as read-only.
type Resource struct {
	GVR schema.GroupVersionResource
	GVK schema.GroupVersionKind
	// Scope is Namespaced or Cluster.
	Scope Scope
	// Singular is the lower-case singular name. It is never empty: when the server does not say,
	// it is the lower-case kind.
	Singular string
	// Verbs are the verbs the server supports, as it lists them.
	Verbs []string
	// ShortNames are the abbreviations a person may type, such as "po".
	ShortNames []string
	// Categories are the groupings the type is part of, such as "all".
	Categories []string
	// Subresources are names below an object, such as "status" or "log".
	Subresources []string
	// Preferred is true for the version that is used when a name gives no version: the most preferred
	// version of the group that serves this type.
	Preferred bool
	// ServedVersions lists every version that serves this type, the preferred one first.
	ServedVersions []string
	// Stale is true when the server could not confirm the type in the last round: its group version
	// failed or was reported stale, and this is what was known before.
	Stale bool
	// CRDUID is the UID of the CustomResourceDefinition behind the type. Discovery does not report it:
	// it is set for resources that a Tracker learnt from a CRD and empty otherwise.
	CRDUID types.UID
}

// HasVerbs reports whether the server supports all of verbs for this type.
func (r Resource) HasVerbs(verbs ...string) bool {
	for _, v := range verbs {
		if !slices.Contains(r.Verbs, v) {
			return false
		}
	}
	return true
}

// Watchable reports whether the type can be listed and watched, which keeping a live copy needs.
func (r Resource) Watchable() bool { return r.HasVerbs("list", "watch") }

// String returns a name that resolves to exactly this resource: "certificates.v1.cert-manager.io", or
// "pods.v1." for the core group, whose trailing dot says that the group is empty.
func (r Resource) String() string {
	return r.GVR.Resource + "." + r.GVR.Version + "." + r.GVR.Group
}

// SkipReason says why a type is not part of what a wildcard or category expands to.
type SkipReason string

const (
	// SkipSubresource marks a subresource: it has no list of its own.
	SkipSubresource SkipReason = "subresource"
	// SkipNoList marks a type that cannot be listed.
	SkipNoList SkipReason = "no list verb"
	// SkipNoWatch marks a type that can be listed but not watched.
	SkipNoWatch SkipReason = "no watch verb"
)

// Skip is a type that matched a wildcard or category and was left out.
type Skip struct {
	// GVR names the type. For a subresource Resource is "pods/log".
	GVR    schema.GroupVersionResource
	Reason SkipReason
}

// Resolution is what a name stands for.
type Resolution struct {
	// Resources has one entry for a plain name, and one per type for a category or wildcard, in the
	// server's order of preference.
	Resources []Resource
	// Alternatives are other types that the same name matches and that lost by priority.
	Alternatives []Resource
	// Skipped are members of a category or wildcard that cannot be listed and watched. It stays empty
	// for a plain name: that is resolved whatever its verbs are.
	Skipped []Skip
	// Unknown are the group versions whose discovery failed or is stale. A wildcard or category has the
	// members that were known there before, marked Stale, and may have others.
	Unknown []GroupFailure
}

// skipReason returns why r is left out of wildcards and categories, and "" when it is not.
func skipReason(r Resource) SkipReason {
	switch {
	case !r.HasVerbs("list"):
		return SkipNoList
	case !r.HasVerbs("watch"):
		return SkipNoWatch
	}
	return ""
}
