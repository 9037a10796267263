package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/requests"
)

// State says how far an informer has come.
type State = health.State

const (
	// StatePending: not started yet, or waiting for the type to be served.
	StatePending = health.StatePending
	// StateSyncing: started; the first list is on its way.
	StateSyncing = health.StateSyncing
	// StateResuming: the cache shows what an earlier process kept (see Options.Persistence), which is not known to be current
	// yet: the status is stale, and HasSynced false.
	StateResuming = health.StateResuming
	// StateSynced: the cache holds the type's objects and follows them.
	StateSynced = health.StateSynced
	// StateDegraded: requests fail. The cache keeps what it has, and trying goes on.
	StateDegraded = health.StateDegraded
	// StateGone: the type is no longer served as it was. The cache is empty, each object has been queued
	// for its handlers as deleted, and StatePending or StateSyncing follows at once.
	StateGone = health.StateGone
	// StateStopped: ended for good.
	StateStopped = health.StateStopped
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
	// Stale is set while the cache may be behind although it has been filled: the state is Degraded, no
	// contact has been possible for half a minute, or what is shown is of an earlier process and not confirmed. The cache
	// stays readable.
	Stale bool
	// Resuming is set while what is shown is of an earlier process (see Options.Persistence) and not confirmed, also where the
	// state is Degraded.
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
	// ListDuration is how long the last list took, from the request until the last page, or until the initial events of a
	// watch-list were over; of several namespaces, which are listed one by one, it is that of the last one. Zero before
	// the first.
	ListDuration time.Duration
	// Relists counts how often the type was listed again, and why.
	Relists Relists
	// Shard is what is known of the shard that the informer follows (see ResourceOptions.Shard); nil: it follows everything.
	Shard *ShardStatus
}

// statusOf returns a status as users see it. TestStatusIsWhole checks that nothing is left out.
func statusOf(s health.Status) Status {
	return Status{
		GVR: s.GVR, View: s.View, State: s.State, Reason: s.Reason, Message: s.Message, Stale: s.Stale, Resuming: s.Resuming,
		Terminating: s.Terminating, Version: s.Version, Generation: s.Generation, UID: s.UID, Since: s.Since,
		LastError: s.LastError, LastContact: s.LastContact, ListDuration: s.ListDuration, Relists: Relists(s.Relists), Shard: shardStatusOf(s.Shard),
	}
}

// String returns one line with the type, the version that is followed where it is another one, the state and its reason.
func (s Status) String() string {
	name := formatGVR(s.GVR)
	if s.Version != "" && s.Version != s.GVR.Version {
		name += " in version " + s.Version
	}
	if s.View != "" {
		name += " (" + s.View + ")"
	}
	text := name + ": " + s.describe()
	if s.Stale {
		text += "; stale"
	}
	return text
}

// describe is the state, and the reason and message if there are any.
func (s Status) describe() string { return health.Describe(s.State, s.Reason, s.Message) }

// Settled reports whether waiting longer is not expected to change the state: the informer is synced or
// stopped, or the server says that the type does not exist, cannot be watched, or may not be read, or that
// it does not accept the credentials.
func (s Status) Settled() bool { return health.Settled(s.State, s.Reason) }

// absent reports whether the informer has nothing to follow.
func (s Status) absent() bool { return health.Absent(s.State, s.Reason) }

// RelistReason says why a type was listed again.
type RelistReason = requests.RelistReason

const (
	// RelistExpired: the server no longer has the history since the resource version that was reached (410).
	RelistExpired = requests.RelistExpired
	// RelistTooLarge: the server has not reached the resource version that was asked for.
	RelistTooLarge = requests.RelistTooLarge
	// RelistRestored: the server was restored from an older backup.
	RelistRestored = requests.RelistRestored
	// RelistFailed: a request failed, or a watch broke off, in any other way.
	RelistFailed = requests.RelistFailed
)

// Relists counts by reason how often a type was listed again, since the informer was made. Relists are normal: a
// few a day follow from compaction of the server's history, and each change of a CRD's schema makes one.
type Relists struct {
	// Expired counts those with RelistExpired, and so on.
	Expired, TooLarge, Restored, Failed int
}

// Total is the sum over all reasons.
func (r Relists) Total() int { return r.Expired + r.TooLarge + r.Failed }
