package discovery

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/queue"
)

// EventAction is the kind of change of a type.
type EventAction string

const (
	// Added is sent for every existing type when a handler subscribes, and for every new one.
	Added EventAction = "Added"
	// Changed is sent when a type changes in anything except its schema; see Event.Changes.
	Changed EventAction = "Changed"
	// Removed is sent when a type is confirmed absent. A CRD that was deleted and created again is Removed
	// and then Added, even if both were observed together.
	Removed EventAction = "Removed"
	// Synced is sent once to each handler, after the Added events of all existing types, and not before
	// TrackerStatus.Synced is true. Its Type is empty.
	Synced EventAction = "Synced"
	// FailuresChanged is sent when the set of group versions with failed or stale discovery changes; see
	// Event.FailedGroupVersions. When discovery of a group version succeeds again, the events of its types
	// are sent first. The Type of the event is empty.
	FailuresChanged EventAction = "Unknown"
)

// Event is a change of the served types.
type Event struct {
	Action EventAction
	// Type is the current type; for Removed, the last one.
	Type Type
	// Old is the previous type, for Changed only.
	Old Type
	// Changes are the differences between Old and Type, for Changed only.
	Changes Change
	// FailedGroupVersions lists all group versions with failed or stale discovery, for FailuresChanged only.
	FailedGroupVersions []GroupFailure
}

// Change is a set of the aspects of a type that changed.
type Change uint8

const (
	// ChangeScope: the scope changed.
	ChangeScope Change = 1 << iota
	// ChangeKind: the kind changed.
	ChangeKind
	// ChangeVersions: the served versions, their order, verbs or subresources changed.
	ChangeVersions
	// ChangeStorage: the storage version or the stored versions changed.
	ChangeStorage
	// ChangeNames: singular, short names or categories.
	ChangeNames
	// ChangeConditions: established or terminating.
	ChangeConditions
	// ChangeSource: the source of the information changed, or the UID became known. It is still the same
	// type.
	ChangeSource
	// ChangeConversion: a conversion webhook was added or removed.
	ChangeConversion
)

var changeNames = []string{"scope", "kind", "versions", "storage", "names", "conditions",
	"source", "conversion"}

// Has reports whether c includes all of other.
func (c Change) Has(other Change) bool { return c&other == other }

func (c Change) String() string {
	var parts []string
	for i, name := range changeNames {
		if c.Has(1 << i) {
			parts = append(parts, name)
		}
	}
	return strings.Join(parts, ",")
}

// compare returns the differences between two states of the same type.
func compare(a, b Type) Change {
	var c Change
	set := func(differs bool, flag Change) {
		if differs {
			c |= flag
		}
	}
	set(a.Scope != b.Scope, ChangeScope)
	set(a.Kind != b.Kind, ChangeKind)
	set(!slices.EqualFunc(a.Versions, b.Versions, sameVersion), ChangeVersions)
	set(storageVersion(a) != storageVersion(b) || !slices.Equal(a.StoredVersions, b.StoredVersions),
		ChangeStorage)
	set(a.Singular != b.Singular || !slices.Equal(a.ShortNames, b.ShortNames) ||
		!slices.Equal(a.Categories, b.Categories), ChangeNames)
	set(a.Established != b.Established || a.Terminating != b.Terminating, ChangeConditions)
	set(a.Source != b.Source || a.UID != b.UID, ChangeSource)
	set(a.ConversionWebhook != b.ConversionWebhook, ChangeConversion)
	return c
}

func sameVersion(a, b TypeVersion) bool {
	return a.Name == b.Name && a.Served == b.Served && a.Kind == b.Kind &&
		equalSets(a.Verbs, b.Verbs) && equalSets(a.Subresources, b.Subresources)
}

// equalSets compares without order, because the discovery forms sort verbs differently.
func equalSets(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

func storageVersion(t Type) string {
	for _, v := range t.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// Subscription delivers the events of a Tracker to one handler, in order. A slow handler does not delay
// others. It has a goroutine only while events are queued.
type Subscription struct {
	tracker *Tracker
	handler func(Event)
	calls   *queue.Calls
}

// Stop ends the delivery and drops queued events. It does not wait for a call of the handler in progress (see
// Done), so that handlers can call it. It is idempotent.
func (s *Subscription) Stop() {
	s.calls.Close()
	s.tracker.forgetEnded()
}

// Done returns a channel that is closed after Stop or the end of the tracker, when the handler is no longer
// called.
func (s *Subscription) Done() <-chan struct{} { return s.calls.Done() }

// Pending returns the number of queued events, including the one being handled.
func (s *Subscription) Pending() int { return s.calls.Pending() }

// push queues events. It never blocks.
func (s *Subscription) push(events []Event) {
	calls := make([]func(), len(events))
	for i, e := range events {
		calls[i] = func() { s.handler(e) }
	}
	s.calls.Push(calls...)
}

// ended reports whether the handler is no longer called.
func (s *Subscription) ended() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}
