package follow

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/requests"
)

// identity is what makes a type the same as before.
type identity struct {
	kind       string
	namespaced bool
	uid        types.UID
}

func identityOf(t *typesource.Type) identity {
	return identity{kind: t.Kind, namespaced: t.Namespaced, uid: t.UID}
}

// same reports whether two identities are of one type. A UID that is not known is no difference.
func (i identity) same(other identity) bool {
	if i.uid == "" || other.uid == "" {
		i.uid, other.uid = "", ""
	}
	return i == other
}

// knowledge is what is known about one type at one moment.
type knowledge struct {
	typesource.Type
	exists   bool
	complete bool // the source has told all there are
	// unknown are the group versions that could not be discovered.
	unknown map[schema.GroupVersion]error
}

// undiscovered returns why discovery failed for the first version that the policy accepts; nil if it failed
// for none.
func (k *knowledge) undiscovered(asked schema.GroupVersionResource, policy Versions) error {
	var found error
	for gv, err := range k.unknown {
		if gv.Group == asked.Group && policy.accepts(asked.Version, gv.Version) {
			if text := fmt.Errorf("%s: %w", gv, err); found == nil || text.Error() < found.Error() {
				found = text
			}
		}
	}
	return found
}

// runnable returns the version to follow in these namespaces, or the reason to wait and its cause, which may
// be nil.
func (k *knowledge) runnable(
	asked schema.GroupVersionResource, policy Versions, namespaces Namespaces,
) (version string, waits requests.Reason, cause error) {
	switch {
	case !k.exists && !k.complete:
		return "", requests.ReasonTypesUnknown, nil
	case !k.exists:
		waits = requests.ReasonNotInstalled
	case !k.Established:
		return "", requests.ReasonNotEstablished, nil
	default:
		version, waits = policy.choose(asked.Version, k.Type)
	}
	if waits == requests.ReasonNotInstalled || waits == requests.ReasonVersionNotServed {
		if cause = k.undiscovered(asked, policy); cause != nil {
			return "", requests.ReasonGroupUnknown, cause
		}
	}
	if waits == requests.ReasonNone && namespaces.Limited() && !k.Namespaced {
		return "", requests.ReasonScopeConflict, nil
	}
	return version, waits, nil
}

// ended returns why a generation that follows the type as it was must end, whatever its version. A type that
// is no longer established still has its objects: only what cannot come back ends a generation.
func (k *knowledge) ended(was identity) requests.Reason {
	switch {
	case !k.exists:
		return requests.ReasonNotInstalled
	case !identityOf(&k.Type).same(was):
		return requests.ReasonReplaced
	}
	return requests.ReasonNone
}

// serves reports whether a version can be listed and watched.
func (k *knowledge) serves(version string) bool { return slices.Contains(k.Versions, version) }
