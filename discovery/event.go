package discovery

import (
	"slices"
	"strings"
)

// EventKind says what happened to a type.
type EventKind string

const (
	// Added is sent for every type that exists when a listener subscribes, and for every new one.
	Added EventKind = "Added"
	// Changed is sent when anything but the schema of a type changed; see Event.Changes.
	Changed EventKind = "Changed"
	// Removed is sent when a type is confirmed absent. A CRD that was deleted and created again is
	// Removed and then Added, even when both were seen as one.
	Removed EventKind = "Removed"
	// Synced is sent once, after the types that existed when the tracker first had a complete picture.
	// Its Type is empty.
	Synced EventKind = "Synced"
	// Unknown is sent when discovery fails for other group versions than before; see Event.Unknown. A group
	// version that is no longer unknown is reported after its types. Its Type is empty.
	Unknown EventKind = "Unknown"
)

// Event is one change of what exists.
type Event struct {
	Kind EventKind
	// Type is the type as it is now; for Removed, as it was last.
	Type Type
	// Old is the type as it was before, for Changed only.
	Old Type
	// Changes say what differs between Old and Type, for Changed only.
	Changes Change
	// Unknown are all group versions that discovery cannot confirm now, for Unknown only.
	Unknown []GroupFailure
}

// Change is a set of the aspects of a type that changed.
type Change uint8

const (
	// ChangeScope: the type became namespaced or stopped being so.
	ChangeScope Change = 1 << iota
	// ChangeKind: the kind has another name.
	ChangeKind
	// ChangeVersions: other versions are served, in another order, or with other verbs or subresources.
	ChangeVersions
	// ChangeStorage: another storage version, or other stored versions.
	ChangeStorage
	// ChangeNames: singular, short names or categories.
	ChangeNames
	// ChangeConditions: established or terminating.
	ChangeConditions
	// ChangeSource: the type is now known from somewhere else, or its UID became known. It is still the
	// same type.
	ChangeSource
	// ChangeConversion: a conversion webhook came or went.
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

// compare returns what differs between two states of the same type.
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
	set(storage(a) != storage(b) || !slices.Equal(a.StoredVersions, b.StoredVersions), ChangeStorage)
	set(a.Singular != b.Singular || !slices.Equal(a.ShortNames, b.ShortNames) ||
		!slices.Equal(a.Categories, b.Categories), ChangeNames)
	set(a.Established != b.Established || a.Terminating != b.Terminating, ChangeConditions)
	set(a.Source != b.Source || a.UID != b.UID, ChangeSource)
	set(a.ConversionWebhook != b.ConversionWebhook, ChangeConversion)
	return c
}

func sameVersion(a, b TypeVersion) bool {
	return a.Name == b.Name && a.Served == b.Served && a.Kind == b.Kind &&
		sameSet(a.Verbs, b.Verbs) && sameSet(a.Subresources, b.Subresources)
}

// sameSet compares without order: discovery sorts verbs differently from one form to the other.
func sameSet(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

func storage(t Type) string {
	for _, v := range t.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}
