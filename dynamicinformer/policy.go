package dynamicinformer

import (
	"errors"
	"slices"
	"strings"
)

// VersionPolicy says which version of a type is followed, and what happens when the server stops serving it.
// The zero value means that it is not set, which in the end comes to PinnedVersion.
type VersionPolicy struct {
	kind  versionKind
	order []string
}

type versionKind int

const (
	versionUnset versionKind = iota
	versionPinned
	versionPreferred
	versionOrdered
)

// PinnedVersion follows the version that was asked for and no other. When it is no longer served, every object
// is delivered as deleted, and the informer waits for the version to come back.
func PinnedVersion() VersionPolicy { return VersionPolicy{kind: versionPinned} }

// PreferredVersion follows the version that the server prefers of those that can be listed and watched. What
// has been chosen stays until it is no longer served; then the version that is preferred by that time takes
// over, and the objects that exist in both are delivered as updates. It needs Options.Types. The version of
// the GVR that was asked for may be empty and is only part of its name.
func PreferredVersion() VersionPolicy { return VersionPolicy{kind: versionPreferred} }

// VersionOrder is PreferredVersion with an order of one's own: the first of these versions that can be
// listed and watched is chosen, and none besides them.
func VersionOrder(versions ...string) VersionPolicy {
	return VersionPolicy{kind: versionOrdered, order: slices.Clone(versions)}
}

// String describes the policy: "pinned", "preferred", or the versions in order.
func (p VersionPolicy) String() string {
	switch p.kind {
	case versionPreferred:
		return "preferred"
	case versionOrdered:
		return strings.Join(p.order, ",")
	default:
		return "pinned"
	}
}

func (p VersionPolicy) isSet() bool { return p.kind != versionUnset }

func (p VersionPolicy) validate() error {
	switch {
	case p.kind != versionOrdered:
		return nil
	case len(p.order) == 0:
		return errors.New("the order of versions is empty")
	case slices.Contains(p.order, ""):
		return errors.New("the order of versions has an empty one")
	}
	return nil
}

// choose returns the version to follow, asked being the one that was asked for, or why there is none.
func (p VersionPolicy) choose(asked string, t Type) (version string, none Reason) {
	wanted := []string{asked}
	switch p.kind {
	case versionPreferred:
		wanted = slices.Concat(t.Versions, t.Unwatchable)
	case versionOrdered:
		wanted = p.order
	}
	none = ReasonVersionNotServed
	for _, version := range wanted {
		if slices.Contains(t.Versions, version) {
			return version, ReasonNone
		}
		if slices.Contains(t.Unwatchable, version) {
			none = ReasonVerbUnsupported
		}
	}
	return "", none
}
