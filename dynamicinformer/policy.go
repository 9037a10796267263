package dynamicinformer

import "github.com/crdcache/crdcache/internal/follow"

// VersionPolicy says which version of a type is followed, and what happens when the server stops serving it.
// The zero value means that it is not set, which in the end comes to PinnedVersion.
type VersionPolicy struct{ versions follow.Versions }

// PinnedVersion follows the version that was asked for and no other. When it is no longer served, every object
// is delivered as deleted, and the informer waits for the version to come back.
func PinnedVersion() VersionPolicy { return VersionPolicy{follow.Pinned()} }

// PreferredVersion follows the version that the server prefers of those that can be listed and watched. What
// has been chosen stays until it is no longer served; then the version that is preferred by that time takes
// over, and the objects that exist in both are delivered as updates. It needs Options.Types. The version of
// the GVR that was asked for may be empty and is only part of its name.
func PreferredVersion() VersionPolicy { return VersionPolicy{follow.Preferred()} }

// VersionOrder is PreferredVersion with an order of one's own: the first of these versions that can be
// listed and watched is chosen, and none besides them.
func VersionOrder(versions ...string) VersionPolicy {
	return VersionPolicy{follow.Ordered(versions...)}
}

// String describes the policy: "pinned", "preferred", or the versions in order.
func (p VersionPolicy) String() string { return p.versions.String() }
