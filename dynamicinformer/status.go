package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// State says how far an informer has come.
type State string

const (
	// StatePending: not started yet, or waiting for the type to be served.
	StatePending State = "Pending"
	// StateSyncing: started; the first list is on its way.
	StateSyncing State = "Syncing"
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
	// View describes what the informer shows of the type, in one line; empty where that is everything, as it is.
	View string
	// State says how far the informer has come.
	State State
	// Reason is why, for a machine. It is set while requests fail, also before that degrades the state.
	Reason Reason
	// Message is why, for a person: one line.
	Message string
	// Stale is set while the cache may be behind although it has been filled: the state is Degraded, or no
	// contact has been possible for half a minute. The cache stays readable.
	Stale bool
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
	// Relists counts how often the type was listed again, and why.
	Relists Relists
}

// String says in one line of which type this is, how far it has come, and why.
func (s Status) String() string {
	name := formatGVR(s.GVR)
	if s.View != "" {
		name += " (" + s.View + ")"
	}
	text := name + ": " + s.describe()
	if s.Stale {
		text += "; stale"
	}
	return text
}

// Settled reports whether waiting longer is not expected to change the state: the informer is synced or
// stopped, or the server says that the type does not exist, cannot be watched, or may not be read, or that
// it does not accept the credentials.
func (s Status) Settled() bool {
	switch s.State {
	case StateSynced, StateStopped:
		return true
	case StatePending, StateDegraded:
		return s.Reason.settles()
	case StateSyncing:
		return s.Reason == ReasonUnauthorized
	}
	return false
}
