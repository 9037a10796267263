package health

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/internal/requests"
)

// State says how far an informer has come.
type State string

const (
	// StatePending: not started yet, or waiting for the type to be served.
	StatePending State = "Pending"
	// StateSyncing: started; the first list is on its way.
	StateSyncing State = "Syncing"
	// StateResuming: the cache shows what an earlier process kept, which is not known to be current yet.
	StateResuming State = "Resuming"
	// StateSynced: the cache holds the type's objects and follows them.
	StateSynced State = "Synced"
	// StateDegraded: requests fail. The cache keeps what it has, and trying goes on.
	StateDegraded State = "Degraded"
	// StateGone: the type is no longer served as it was. The cache is empty, each object has been queued
	// for its handlers as deleted, and StatePending or StateSyncing follows at once.
	StateGone State = "Gone"
	// StateStopped: ended for good.
	StateStopped State = "Stopped"
)

// Status is what is known of an informer at one moment.
type Status struct {
	// GVR is the type.
	GVR schema.GroupVersionResource
	// View describes what the informer shows of the type, in one line; empty where that is everything, as it
	// is.
	View string
	// State says how far the informer has come.
	State State
	// Reason is why, for a machine. It is set while requests fail, also before that degrades the state.
	Reason requests.Reason
	// Message is why, for a person: one line.
	Message string
	// Stale is set while the cache may be behind although it has been filled: the state is Degraded, no
	// contact has been possible for half a minute, or what is shown is of an earlier process and not
	// confirmed. The cache stays readable.
	Stale bool
	// Resuming is set while what is shown is of an earlier process and not confirmed, also where the state is
	// Degraded.
	Resuming bool
	// Terminating is set while the type's CRD is being deleted and still has objects. The informer goes on
	// and delivers their deletions.
	Terminating bool
	// Version is that of the type which the latest generation follows: see ResourceOptions.Versions. Empty
	// before the first.
	Version string
	// Generation counts the times that the informer began to follow the type: with Options.Types, a
	// type that goes and comes back begins another one. Zero before the first.
	Generation int
	// UID is that of the CRD that the generation follows; empty where it is not known.
	UID types.UID
	// Since is when the informer got into State.
	Since time.Time
	// LastError is the failure that Reason tells of: of the newest request, until one succeeds.
	LastError error
	// LastContact is when the server last gave a sign of life for this type: a list, an event, a bookmark,
	// or the beginning of a watch; zero for never. A healthy watch may be silent for a minute, or, where the
	// server sends no bookmarks, for ten.
	LastContact time.Time
	// ListDuration is how long the last list took, from the request until the last page, or until the initial
	// events of a watch-list were over; of several namespaces, which are listed one by one, it is that of the
	// last one. Zero before the first.
	ListDuration time.Duration
	// Relists counts how often the type was listed again, and why.
	Relists Relists
	// Shard is what is known of the shard that the informer follows; nil: it follows everything.
	Shard *requests.ShardStatus
}

// Settled reports whether waiting longer is not expected to change a state.
func Settled(state State, reason requests.Reason) bool {
	switch state {
	case StateSynced, StateStopped:
		return true
	case StatePending, StateDegraded:
		return requests.Settles(reason)
	case StateSyncing, StateResuming:
		return reason == requests.ReasonUnauthorized
	}
	return false
}

// Absent reports whether an informer in this state has nothing to follow.
func Absent(state State, reason requests.Reason) bool {
	return (state == StatePending || state == StateDegraded) && requests.Absent(reason)
}

// Describe is the state, and the reason and message if there are any.
func Describe(state State, reason requests.Reason, message string) string {
	text := string(state)
	if reason != requests.ReasonNone {
		text += fmt.Sprintf(" (%s)", reason)
	}
	if message != "" {
		text += ": " + message
	}
	return text
}

// FormatGVR writes a type as people type it: resource.version.group, without what is empty.
func FormatGVR(gvr schema.GroupVersionResource) string {
	name := gvr.Resource
	for _, part := range []string{gvr.Version, gvr.Group} {
		if part != "" {
			name += "." + part
		}
	}
	return name
}

// CompareGVR orders types by group, resource and version.
func CompareGVR(a, b schema.GroupVersionResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Version, b.Version))
}

// Relists counts by reason how often a type was listed again, since the informer was made. Relists are
// normal: a few a day follow from compaction of the server's history, and each change of a CRD's schema makes
// one.
type Relists struct {
	// Expired counts those with RelistExpired, and so on.
	Expired, TooLarge, Restored, Failed int
}

func (r *Relists) count(reason requests.RelistReason) {
	switch reason {
	case requests.RelistExpired:
		r.Expired++
	case requests.RelistTooLarge:
		r.TooLarge++
	case requests.RelistRestored:
		r.Restored++
	default:
		r.Failed++
	}
}
