package follow

import (
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// Versions is a policy that selects the version to follow. It selects again if the server stops serving that
// version. The zero value is unset, which means VersionsPinned.
type Versions int

const (
	// VersionsPinned follows only the requested version.
	VersionsPinned Versions = iota + 1
	// VersionsPreferred follows the version that the server prefers.
	VersionsPreferred
)

// String returns "pinned" or "preferred".
func (v Versions) String() string {
	if v == VersionsPreferred {
		return "preferred"
	}
	return "pinned"
}

// IsPinned reports whether the policy follows only the requested version.
func (v Versions) IsPinned() bool { return v <= VersionsPinned }

// choose returns the version to follow if a version is requested, or the reason why no version fits.
func (v Versions) choose(requested string, t typesource.Type) (version string, none status.Reason) {
	candidates := []string{requested}
	if !v.IsPinned() {
		candidates = slices.Concat(t.Versions, t.ListOnly, t.Unlistable)
	}
	for _, readable := range [][]string{t.Versions, t.ListOnly} {
		for _, version := range candidates {
			if slices.Contains(readable, version) {
				return version, status.ReasonNone
			}
		}
	}
	if slices.ContainsFunc(candidates,
		func(version string) bool { return slices.Contains(t.Unlistable, version) }) {
		return "", status.ReasonVerbUnsupported
	}
	return "", status.ReasonVersionNotServed
}
