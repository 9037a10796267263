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

// Reason is the machine-readable cause of a State.
type Reason string

const (
	// ReasonNone goes with every state that needs no cause.
	ReasonNone Reason = ""
	// ReasonForbidden: the server answered 403.
	ReasonForbidden Reason = "Forbidden"
	// ReasonUnauthorized: the server answered 401.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonNotFound: the server answered 404: it does not serve the type.
	ReasonNotFound Reason = "NotFound"
	// ReasonVerbUnsupported: the server answered 405: the type cannot be listed or watched.
	ReasonVerbUnsupported Reason = "VerbUnsupported"
	// ReasonThrottled: the server answered 429.
	ReasonThrottled Reason = "Throttled"
	// ReasonUnreachable: no answer came from the server.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonTypesUnknown: the source of types has not said yet which there are.
	ReasonTypesUnknown Reason = "TypesUnknown"
	// ReasonNotInstalled: there is no such type.
	ReasonNotInstalled Reason = "NotInstalled"
	// ReasonNotEstablished: the type's CRD is there and the server does not serve it yet.
	ReasonNotEstablished Reason = "NotEstablished"
	// ReasonVersionNotServed: the type exists, without this version.
	ReasonVersionNotServed Reason = "VersionNotServed"
	// ReasonScopeConflict: the type is cluster-scoped and the factory is limited to a namespace.
	ReasonScopeConflict Reason = "ScopeConflict"
	// ReasonReplaced: the type's CRD is another one than before.
	ReasonReplaced Reason = "Replaced"
	// ReasonRequestFailed: any other failure of a list or watch request.
	ReasonRequestFailed Reason = "RequestFailed"
)

// failuresUntilDegraded is how many requests in a row may fail before a reason that can pass by itself
// degrades an informer.
const failuresUntilDegraded = 3

// settles reports whether trying on is not expected to help, so that nobody should wait for it.
func (r Reason) settles() bool {
	switch r {
	case ReasonForbidden, ReasonUnauthorized, ReasonNotFound, ReasonVerbUnsupported,
		ReasonNotInstalled, ReasonVersionNotServed, ReasonScopeConflict:
		return true
	}
	return false
}

// Status is what is known of an informer at one moment.
type Status struct {
	// GVR is the type.
	GVR schema.GroupVersionResource
	// State says how far the informer has come.
	State State
	// Reason is why, for a machine. It is set while requests fail, also before that degrades the state.
	Reason Reason
	// Message is why, for a person: one line.
	Message string
	// Generation counts the times that the informer began to follow the type: with Options.Types, a
	// type that goes and comes back begins another one. Zero before the first.
	Generation int
	// UID is that of the CRD that the generation follows; empty where it is not known.
	UID types.UID
	// Since is when the informer got into State.
	Since time.Time
	// LastError is the failure of the newest request, nil once one has succeeded.
	LastError error
	// LastContact is when the server last accepted a list or watch request of this informer; zero for
	// never.
	LastContact time.Time
}

// Settled reports whether waiting longer is not expected to change the state: the informer is synced or
// stopped, or the server says that the type does not exist, cannot be watched, or may not be read.
func (s Status) Settled() bool {
	switch s.State {
	case StateSynced, StateStopped:
		return true
	case StatePending, StateDegraded:
		return s.Reason.settles()
	}
	return false
}
