package discovery

import "time"

// Mode is how a Tracker observes custom resources.
type Mode string

const (
	// Starting: the API server has not answered yet.
	Starting Mode = "Starting"
	// Watching: CustomResourceDefinitions are watched, and changes are observed immediately.
	Watching Mode = "Watching"
	// Polling: reading CustomResourceDefinitions is forbidden, or the server does not have them. Discovery is
	// polled. Changes are observed late, but not a CRD that is created again between two polls.
	Polling Mode = "Polling"
)

// SourceStatus is the state of one source of information.
type SourceStatus struct {
	// Synced is true once the source has answered completely.
	Synced bool
	// Unavailable is true while reading the source is forbidden or the server does not have it.
	Unavailable bool
	// LastError is the last failure, nil after a success. For CRDs it also names CRDs that cannot be
	// decoded, as long as they exist; their earlier types remain.
	LastError error
	// LastContact is the time of the last success.
	LastContact time.Time
}

func (s *SourceStatus) recordSuccess(now time.Time) {
	s.LastError, s.LastContact = nil, now
}

// TrackerStatus is the state of a Tracker.
type TrackerStatus struct {
	Mode Mode
	// Synced is true after both sources have answered completely. It stays true.
	Synced bool
	// Types is the number of known types.
	Types int
	// FailedGroupVersions are the group versions with failed or stale discovery. Their earlier types remain.
	FailedGroupVersions []GroupFailure
	// CRDs describes the watch of CustomResourceDefinitions.
	CRDs SourceStatus
	// APIServices describes the watch of APIServices. The watch only triggers discovery earlier; without
	// it, changes of aggregated API servers are observed by polling.
	APIServices SourceStatus
	// Discovery describes the discovery rounds.
	Discovery SourceStatus
}

// err returns the reason why the tracker is not synced, if it is known. Both sources usually have the same.
func (s *TrackerStatus) err() error {
	switch {
	case s.Synced:
		return nil
	case s.CRDs.Unavailable || s.CRDs.LastError == nil:
		return s.Discovery.LastError
	}
	return s.CRDs.LastError
}
