package discovery

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
)

// NameError reports text that cannot be a resource name on any server.
type NameError struct {
	// Name is the text, truncated if it is very long.
	Name string
	// Offset is the byte offset of the problem.
	Offset int
	// Problem describes the problem.
	Problem string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("invalid resource name %q: at byte %d: %s", e.Name, e.Offset, e.Problem)
}

// GroupFailure names a group version that discovery could not confirm. Its types are unknown, not absent.
type GroupFailure struct {
	GroupVersion schema.GroupVersion
	// Err is ErrStale if the server reported the version as stale, otherwise the error of a request.
	Err error
}

func (f GroupFailure) equal(other GroupFailure) bool { return f.String() == other.String() }

func (f GroupFailure) String() string { return fmt.Sprintf("%s: %v", f.GroupVersion, f.Err) }

// ErrStale is the error of a GroupFailure reported by the server: its copy of the group version's discovery
// document is outdated, for example because an aggregated API server is unavailable.
var ErrStale = errors.New("the API server reports its discovery document as stale")

// NoMatchError reports that a name matches no type of the server.
type NoMatchError struct {
	// Name is the name that was looked up.
	Name string
	// Suggestions are at most five similar names that exist, the most similar first.
	Suggestions []string
	// FailedGroupVersions are the group versions with failed discovery that may contain the name.
	FailedGroupVersions []GroupFailure
	// RefreshErr is set if refreshing failed, so that the answer is based on an older catalog.
	RefreshErr error
}

func (e *NoMatchError) Error() string {
	var b strings.Builder
	if len(e.FailedGroupVersions) > 0 {
		fmt.Fprintf(&b, "cannot check whether the server has the resource type %q", e.Name)
	} else {
		fmt.Fprintf(&b, "the server has no resource type %q", e.Name)
	}
	if len(e.Suggestions) > 0 {
		fmt.Fprintf(&b, "; did you mean %s?", strings.Join(e.Suggestions, ", "))
	}
	if len(e.FailedGroupVersions) > 0 {
		parts := naming.Texts(e.FailedGroupVersions, GroupFailure.String)
		fmt.Fprintf(&b, "; it may be in a group that could not be discovered (%s)", strings.Join(parts, "; "))
	}
	if e.RefreshErr != nil {
		fmt.Fprintf(&b, "; refresh failed: %v", e.RefreshErr)
	}
	return b.String()
}

// Unwrap returns the error of the refresh, if there was one.
func (e *NoMatchError) Unwrap() error { return e.RefreshErr }
