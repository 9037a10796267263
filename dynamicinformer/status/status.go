package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/internal/naming"
)

// State is the phase of an informer.
type State string

const (
	// Pending: not started, or waiting until the server serves the type. See Status.Suspended.
	Pending State = "Pending"
	// Syncing: started; the first list has not been completed.
	Syncing State = "Syncing"
	// Resuming: the cache has objects that an earlier process persisted, and the server has not confirmed
	// them. The status is stale, and HasSynced returns false.
	Resuming State = "Resuming"
	// Synced: the cache has the type's objects and follows their changes.
	Synced State = "Synced"
	// Degraded: requests fail. The cache keeps its objects, and the informer keeps trying.
	Degraded State = "Degraded"
	// Gone: the type's CRD was deleted, or replaced by one with another UID or scope, and its objects with
	// it. The cache is empty, handlers receive a deletion for each object, and Pending or Syncing follows.
	Gone State = "Gone"
	// Stopped: the informer has stopped and cannot start again.
	Stopped State = "Stopped"
)

// Status describes an informer at one moment.
type Status struct {
	// GVR is the type.
	GVR schema.GroupVersionResource
	// Options describes the informer's options (selectors, namespaces, storage, …) in one line. It is empty
	// for all objects in the default form.
	Options string
	// State is the phase of the informer.
	State State
	// Reason is the machine-readable cause. It is set as soon as requests fail, even before the state is
	// Degraded. ReasonPolled and ReasonRepeatedKeys describe a synced cache.
	Reason Reason
	// Message is the cause in one line of text.
	Message string
	// Stale is set while a filled cache may be old: in state Degraded, after 30 seconds without contact,
	// while restored objects are unconfirmed, and while Suspended is set. The cache remains readable.
	Stale bool
	// Suspended is set after an incarnation ended without the deletion of its objects, until the type is
	// listed again or its CRD is deleted: the server no longer serves the version, list or watch, or an
	// APIService was removed. HasSynced returns false, and the cache keeps the last known objects.
	Suspended bool
	// Resuming is set while the cache has unconfirmed objects of an earlier process, even in state Degraded.
	Resuming bool
	// Terminating is set while the type's CRD is being deleted and objects remain. The informer continues
	// and delivers their deletions.
	Terminating bool
	// Version is the API version that the latest incarnation watches: see ResourceOptions.Versions. It is
	// empty before the first incarnation.
	Version string
	// Incarnation is the number of times that the informer began to watch the type: a type that is deleted
	// and created again begins a new incarnation. It is zero before the first.
	Incarnation int
	// UID is the UID of the CRD that the incarnation watches; empty if unknown.
	UID types.UID
	// Since is the time of the last change of State.
	Since time.Time
	// LastError is the error of the newest request, until one succeeds. Reason classifies it.
	LastError error
	// LastContact is the time of the last list, event, bookmark or start of a watch; zero before the first.
	// A healthy watch may be silent for a minute, or for ten minutes if the server sends no bookmarks.
	LastContact time.Time
	// ListDuration is the duration of the last list, from the request to the last page or to the end of a
	// watch-list's initial events. If each namespace has its own watch, it is the duration of the last of
	// their lists. It is zero before the first list.
	ListDuration time.Duration
	// Relists is the number of relists by reason.
	Relists Relists
	// Shard describes the shard that the informer watches (see ResourceOptions.Shard); nil without one.
	Shard *Shard
	// UnlistedSelectors is the number of ResourceOptions.Selectors that are not listed yet.
	UnlistedSelectors int
}

// String returns one line with the type, the watched version if it differs, the state and the reason.
func (s Status) String() string {
	name := naming.FormatType(s.GVR)
	if s.Version != "" && s.Version != s.GVR.Version {
		name += " in version " + s.Version
	}
	if s.Options != "" {
		name += " (" + s.Options + ")"
	}
	text := name + ": " + s.Describe()
	if s.Stale {
		text += "; stale"
	}
	return text
}

// Settled reports whether waiting is unlikely to change the state: the informer is synced or stopped, or
// the server reports that the type does not exist, does not support list, or may not be read,
// or rejects the credentials.
func (s Status) Settled() bool {
	switch s.State {
	case Synced, Stopped:
		return true
	case Pending, Degraded:
		return s.Reason.permanent()
	case Syncing, Resuming:
		return s.Reason == ReasonUnauthorized
	}
	return false
}

// Describe returns the state, and the reason and message if there are any.
func (s Status) Describe() string {
	text := string(s.State)
	if s.Reason != ReasonNone {
		text += " (" + string(s.Reason) + ")"
	}
	if s.Message != "" {
		text += ": " + s.Message
	}
	return text
}

// Incarnation is one period in which an informer watches its type, from the type's creation to its deletion.
type Incarnation struct {
	// GVR is the requested type.
	GVR schema.GroupVersionResource
	// Options describes the informer's options: see Status.Options.
	Options string
	// Version is the watched version. It differs from the version of GVR only with a version policy.
	Version string
	// Number counts the incarnations of an informer, from 1.
	Number int
	// UID is the UID of the CRD; empty if unknown.
	UID types.UID
}

// RelistReason is the cause of a relist.
type RelistReason string

const (
	// RelistExpired: the server no longer has the events since the informer's resource version (410).
	RelistExpired RelistReason = "Expired"
	// RelistTooLarge: the server has not reached the requested resource version.
	RelistTooLarge RelistReason = "TooLarge"
	// RelistRestored: the server was restored from an older backup.
	RelistRestored RelistReason = "Restored"
	// RelistRequested: the program called Informer.Relist, added ranges to a shard, added a handler to an
	// informer without storage, or waited for a version that the watch did not reach.
	RelistRequested RelistReason = "Requested"
	// RelistDiverged: the cache differed from the server; see ResourceOptions.Verify.
	RelistDiverged RelistReason = "Diverged"
	// RelistFailed: a request failed, or a watch ended, in another way.
	RelistFailed RelistReason = "Failed"
)

// Relists counts the relists of an informer by reason. Relists are normal: the server compacts its
// history a few times a day, and each change of a CRD's schema causes one.
type Relists struct{ Expired, TooLarge, Restored, Requested, Diverged, Failed int }

// Total returns the sum over all reasons.
func (r Relists) Total() int {
	return r.Expired + r.TooLarge + r.Restored + r.Requested + r.Diverged + r.Failed
}

// ConditionType names a condition of a factory.
type ConditionType string

const (
	// ConditionReady is true when the types are known and the required ones synced. Others do not count.
	ConditionReady ConditionType = "Ready"
	// ConditionReachable is false after three consecutive requests of a type got no answer, or while
	// Options.Types cannot reach the server. The types keep their states, and become stale after 30 seconds;
	// none is considered deleted.
	ConditionReachable ConditionType = "Reachable"
	// ConditionAuthenticated is false while the server answers requests of a type, or those of Options.Types
	// before the first contact, with 401.
	ConditionAuthenticated ConditionType = "Authenticated"
	// ConditionTypesKnown is true once Options.Types has reported its types, and always without
	// Options.Types or with a typesource.OnDemand.
	ConditionTypesKnown ConditionType = "TypesKnown"
)

// Condition is an observation about a whole factory.
type Condition struct {
	Type ConditionType
	// Status is Unknown until the first observation.
	Status metav1.ConditionStatus
	// Reason is the machine-readable cause; ReasonNone when all is well.
	Reason Reason
	// Message is the cause in one line of text.
	Message string
	// Since is the time of the last change of Status.
	Since time.Time
}

// Cluster is the state of a cluster in a dynamicinformer.Group.
type Cluster struct {
	Name string
	// UID is the UID of the namespace kube-system. It is empty before the first contact, if the namespace may
	// not be read, and if Options.Client is set.
	UID types.UID
	// SameAs is the name of the first other cluster in the group with this UID: it is the same cluster.
	SameAs string
	// Reachable is False while the cluster cannot be reached, since Reachable.Since. Its caches then remain
	// readable as they are. Ready is the condition of this name.
	Reachable, Ready Condition
}

// ListenerHandle is the registration of a listener. It is safe for concurrent use.
type ListenerHandle interface {
	// Close removes the listener and drops its queued calls. It does not wait for a running call (Done does),
	// so the listener itself may call it. Further calls do nothing.
	Close()
	// Done returns a channel that is closed when the listener is no longer called, after Close or Shutdown.
	Done() <-chan struct{}
	// Depth returns the number of queued calls, including the running one.
	Depth() int
}

// Listener observes the informers of a factory, for metrics, logs and alerts. Pass it to New in
// Options.Listener, or to Factory.AddListener at any time. Nil functions are not called.
//
// The functions of a listener are called in order, one at a time, without locks. They may call the factory,
// but must not wait for its Shutdown. Each listener has its own unbounded queue, so a slow one delays no
// other component. A panic ends the process; with utilruntime.ReallyCrash off, the call is skipped.
//
// A new listener first receives the current state: StateChanged with a zero Status as before,
// IncarnationStarted and IncarnationSynced for each informer, and ConditionChanged for each condition.
type Listener struct {
	// StateChanged is called when the state, reason, incarnation, Stale, Terminating, Shard or
	// UnlistedSelectors of an informer's status changes.
	StateChanged func(before, after Status)
	// IncarnationStarted is called when an informer begins to watch its type.
	IncarnationStarted func(incarnation Incarnation)
	// IncarnationSynced is called when the first list of an incarnation is in the cache.
	IncarnationSynced func(incarnation Incarnation)
	// IncarnationEnded is called when an informer no longer watches its type. reason is the reason why the
	// type is gone or not served, ReasonVersionChanged if another version replaces this one, or ReasonNone if
	// the informer stopped.
	IncarnationEnded func(incarnation Incarnation, reason Reason)
	// Relisted is called when an informer relists its type.
	Relisted func(g Incarnation, reason RelistReason)
	// RequestFailed is called for every failed list or watch. Answers that are part of the protocol (410, a
	// resource version from the future) are not failures; Relisted reports them.
	RequestFailed func(failure RequestFailure)
	// ConditionChanged is called when the Status of a condition of the factory changes.
	ConditionChanged func(before, after Condition)
}
