package follow

import (
	"errors"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// Versions is a policy that selects the version to follow. It selects again if the server stops serving that
// version. The zero value is unset, which means Pinned.
type Versions struct {
	kind  versionsKind
	order []string
}

type versionsKind int

const (
	versionsUnset versionsKind = iota
	versionsPinned
	versionsPreferred
	versionsOrdered
)

// PinnedVersion follows only the requested version.
func PinnedVersion() Versions { return Versions{kind: versionsPinned} }

// PreferredVersion follows the version that the server prefers.
func PreferredVersion() Versions { return Versions{kind: versionsPreferred} }

// OrderedVersions follows the first of these versions that can be watched, or else listed.
func OrderedVersions(versions ...string) Versions {
	return Versions{kind: versionsOrdered, order: slices.Clone(versions)}
}

// String returns "pinned", "preferred", or the versions in order.
func (v Versions) String() string {
	switch v.kind {
	case versionsPreferred:
		return "preferred"
	case versionsOrdered:
		return strings.Join(v.order, ",")
	default:
		return "pinned"
	}
}

// IsPinned reports whether the policy follows only the requested version.
func (v Versions) IsPinned() bool { return v.kind <= versionsPinned }

// Validate returns an error if the policy is invalid.
func (v Versions) Validate() error {
	switch {
	case v.kind != versionsOrdered:
		return nil
	case len(v.order) == 0:
		return errors.New("the order of versions is empty")
	case slices.Contains(v.order, ""):
		return errors.New("the order of versions contains an empty version")
	}
	return nil
}

// accepts reports whether the policy allows a version in place of the requested one.
func (v Versions) accepts(requested, version string) bool {
	switch v.kind {
	case versionsPreferred:
		return true
	case versionsOrdered:
		return slices.Contains(v.order, version)
	}
	return version == requested
}

// choose returns the version to follow if a version is requested, or the reason why no version fits.
func (v Versions) choose(requested string, t typesource.Type) (version string, none status.Reason) {
	candidates := []string{requested}
	switch v.kind {
	case versionsPreferred:
		candidates = slices.Concat(t.Versions, t.ListOnly, t.Unlistable)
	case versionsOrdered:
		candidates = v.order
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
