package discovery

import "time"

// Mode says how a Tracker learns about custom resources.
type Mode string

const (
	// Starting: the API server has not answered yet.
	Starting Mode = "Starting"
	// Watching: CustomResourceDefinitions are watched, changes are known at once.
	Watching Mode = "Watching"
	// Polling: CustomResourceDefinitions may not be read or do not exist on this server. Discovery is
	// polled, so that changes are known late, and a CRD that is deleted and created again between two
	// polls goes unnoticed.
	Polling Mode = "Polling"
)

// SourceStatus is the state of one source of knowledge.
type SourceStatus struct {
	// Synced is true once the source has answered completely.
	Synced bool
	// Denied is true while the source may not be read or does not exist.
	Denied bool
	// LastError is the last failure, nil after a success. For CRDs it also names those that are there and
	// cannot be understood, for as long as they cannot: what was known of their types is kept.
	LastError error
	// LastContact is the last success.
	LastContact time.Time
}

func (s *SourceStatus) ok(now time.Time) {
	s.LastError, s.LastContact = nil, now
}

// TrackerStatus is the state of a Tracker.
type TrackerStatus struct {
	Mode Mode
	// Synced is true once the tracker has had a complete picture. It stays true.
	Synced bool
	// Types is how many types are known.
	Types int
	// Unknown are the group versions whose discovery failed or is stale. What was known of them is kept.
	Unknown []GroupFailure
	// CRDs is the watch on CustomResourceDefinitions.
	CRDs SourceStatus
	// APIServices is the watch on APIServices. It only makes discovery look sooner; without it, changes
	// of aggregated API servers are known after a poll.
	APIServices SourceStatus
	// Discovery is the discovery rounds.
	Discovery SourceStatus
}
