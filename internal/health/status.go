package health

import (
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// The public values are defined in package status.
type (
	Status         = status.Status
	State          = status.State
	Condition      = status.Condition
	ConditionType  = status.ConditionType
	Incarnation    = status.Incarnation
	RequestFailure = status.RequestFailure
	Listener       = status.Listener
)

// IsTypeAbsent reports whether an informer with this status waits for a type that does not exist.
func IsTypeAbsent(s Status) bool {
	return (s.State == status.Pending || s.State == status.Degraded) && s.Reason.Absent()
}

func countRelist(r *status.Relists, reason status.RelistReason) {
	switch reason {
	case status.RelistExpired:
		r.Expired++
	case status.RelistTooLarge:
		r.TooLarge++
	case status.RelistRestored:
		r.Restored++
	case status.RelistRequested:
		r.Requested++
	case status.RelistDiverged:
		r.Diverged++
	default:
		r.Failed++
	}
}

// statusDiffers reports whether two statuses differ in more than the time of contact.
func statusDiffers(s, other *Status) bool {
	return s.State != other.State || s.Reason != other.Reason || s.Incarnation != other.Incarnation ||
		s.Stale != other.Stale || s.Resuming != other.Resuming || s.Suspended != other.Suspended ||
		s.Terminating != other.Terminating ||
		s.Shard != other.Shard || s.UnlistedSelectors != other.UnlistedSelectors
}

func equalShards(a, b *status.Shard) bool {
	return a != nil && b != nil && a.Key == b.Key && a.Filter == b.Filter &&
		slices.Equal(a.Desired, b.Desired) && slices.Equal(a.Listed, b.Listed)
}
