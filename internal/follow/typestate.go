package follow

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// identity identifies a type across changes.
type identity struct {
	kind       string
	namespaced bool
	uid        types.UID
}

func identityOf(t *typesource.Type) identity {
	return identity{kind: t.Kind, namespaced: t.Namespaced, uid: t.UID}
}

// matches reports whether two identities belong to one type. An unknown UID matches any.
func (i identity) matches(other identity) bool {
	if i.uid == "" || other.uid == "" {
		i.uid, other.uid = "", ""
	}
	return i == other
}

type typeState struct {
	typesource.Type
	exists bool
	// deleted is set if the type was never reported, or was reported as deleted.
	deleted  bool
	complete bool // the source has reported all types
	// unknown are the group versions that could not be discovered.
	unknown map[schema.GroupVersion]error
}

// discoveryError returns the error of discovery for the first version that the policy accepts, or nil.
func (s *typeState) discoveryError(requested schema.GroupVersionResource, policy Versions) error {
	var found error
	for gv, err := range s.unknown {
		if gv.Group == requested.Group && (!policy.IsPinned() || gv.Version == requested.Version) {
			if e := fmt.Errorf("%s: %w", gv, err); found == nil || e.Error() < found.Error() {
				found = e
			}
		}
	}
	return found
}

// versionToFollow returns the version to follow in these namespaces, or why to wait; cause can be nil.
func (s *typeState) versionToFollow(
	requested schema.GroupVersionResource, policy Versions, namespaces Namespaces,
) (version string, waitReason status.Reason, cause error) {
	switch {
	case !s.exists && !s.complete:
		return "", status.ReasonTypesUnknown, nil
	case !s.exists:
		waitReason = status.ReasonNotInstalled
	case !s.Established:
		return "", status.ReasonNotEstablished, nil
	default:
		version, waitReason = policy.choose(requested.Version, s.Type)
	}
	if waitReason == status.ReasonNotInstalled || waitReason == status.ReasonVersionNotServed {
		if cause = s.discoveryError(requested, policy); cause != nil {
			return "", status.ReasonGroupUnknown, cause
		}
	}
	if waitReason == status.ReasonNone && namespaces.IsLimited() && !s.Namespaced {
		return "", status.ReasonScopeConflict, nil
	}
	return version, waitReason, nil
}

// deletionReason returns the reason if the objects of a type that was reported earlier are known to be
// deleted: its CRD is gone, or has another UID or scope. Nothing else proves that: objects can exist without
// an API server that serves them.
func (s *typeState) deletionReason(earlier identity) status.Reason {
	current := identityOf(&s.Type)
	isCustom := earlier.uid != "" || current.uid != ""
	current.kind = earlier.kind // another name of the same objects
	switch {
	case s.deleted:
		return status.ReasonNotInstalled
	case s.exists && isCustom && !current.matches(earlier):
		return status.ReasonReplaced
	}
	return status.ReasonNone
}

// isServed reports whether the server serves a version of an earlier type as before: for list and watch, or
// only for list. A type that is no longer established is still served.
func (s *typeState) isServed(earlier identity, version string, polls bool) bool {
	return s.exists && identityOf(&s.Type).matches(earlier) && s.polls(version) == polls &&
		(polls || slices.Contains(s.Versions, version))
}

// polls reports whether a version can be listed but not watched.
func (s *typeState) polls(version string) bool { return slices.Contains(s.ListOnly, version) }

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
