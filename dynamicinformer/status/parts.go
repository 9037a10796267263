package status

import (
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// Handler describes an event handler of an informer.
type Handler struct {
	// Name is the name from Named or typed.Handler.Name, or the handler's Go type.
	Name string
	// Depth is the number of events in the handler's queue, including the one it is handling. If the handler
	// is too slow it grows without bound, unless events are merged (see dynamicinformer.Coalesce).
	Depth int
	// Coalesced is the number of events that the handler did not receive, because they were merged.
	Coalesced int64
	// Lag is the age of the oldest event in the queue; zero if the queue is empty.
	Lag time.Duration
	// Synced reports whether the handler has handled the last object of the initial list.
	Synced bool
	// DecodesBecause is why objects are decoded for the handler; empty if they are not. See MetadataOnly.
	DecodesBecause string
}

// FollowedType describes a type that a subscription follows.
type FollowedType struct {
	// Status is the status of the type's informer.
	Status Status
	// Depth is the number of the type's events that the subscriber has not handled.
	Depth int
}

// Shard describes the shard that an informer watches.
type Shard struct {
	// Key is the hashed field.
	Key sharding.Key
	// Desired are the desired ranges. Listed are the ranges that the cache has objects of. Both are disjoint.
	Desired, Listed []sharding.Range
	// Filter names the component that removes objects outside the shard, as far as the server's answers
	// show it. The informer always filters as well.
	Filter sharding.Filter
}

// Persistence describes how an informer persists its objects (see Options.Persistence).
type Persistence struct {
	// Enabled reports whether the informer persists its objects. If not, DisabledReason says why.
	Enabled        bool
	DisabledReason string
	// Err is the last failure, until a save succeeds.
	Err error
	// Saves counts successful saves, and Failures failed ones. After a failure the informer waits
	// twice Options.PersistenceInterval; the pause doubles up to five minutes.
	Saves, Failures int
	// Resumed reports whether the informer continued from restored objects without a list.
	Resumed bool
	// Checkpoint is the checkpoint of the persisted content, as far as this process knows; zero for none.
	Checkpoint persistence.Checkpoint
}
