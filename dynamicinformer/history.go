package dynamicinformer

import (
	"fmt"

	"github.com/crdcache/crdcache/internal/informer"
)

// History is the recent past of an informer's cache: how its content has become what it is, with the resource versions of
// the API server. It is what a server needs that has others list and watch the cache. See Informer.KeepHistory.
type History struct {
	// Snapshot is the present content. Synced says whether it has been listed.
	Snapshot *Snapshot
	Synced   bool
	// Version is the resource version up to which the content is complete: that of the last list, event or bookmark.
	Version uint64
	// Oldest is the resource version since which changes are complete.
	Oldest uint64
	// Next is closed when there is more, or when the past was forgotten.
	Next <-chan struct{}

	changes []informer.Change
}

// Change is one step of a History.
type Change struct {
	// Key is "namespace/name", or the name alone; a part of an object's memory.
	Key string
	// Version is the resource version of the change.
	Version uint64
	// Old and New are the object before and after, as it is kept (see Snapshot.Stored): Old is nil for one that appeared,
	// New for one that was deleted. They are shared and must not be changed.
	Old, New any
}

// Len counts the changes.
func (h History) Len() int { return len(h.changes) }

// At returns a change by its number, from 0; the oldest is the first.
func (h History) At(i int) Change { return Change(h.changes[i]) }

// KeepHistory has the informer remember the changes that its watch brings from now on, for History: at least the last of
// them, as many as are asked for, and up to twice as many, with the objects as they were before and after. Of several calls
// the largest number counts, which must be positive. A list after the first, and a type that goes, end the history: in
// which order things have happened, nobody knows.
//
// It fails for an informer that follows several namespaces one by one, whose changes have no order.
func (i *Informer) KeepHistory(changes int) error {
	if changes <= 0 {
		return fmt.Errorf("%s: a history of %d changes: it must be positive", formatGVR(i.gvr), changes)
	}
	if names, all := i.options.Namespaces.set.Names(), i.options.Namespaces.set.IsAll(); !all && len(names) != 1 {
		return fmt.Errorf("%s: there is no history of %s: what is watched by several watches has no order", formatGVR(i.gvr), i.options.Namespaces)
	}
	i.core.KeepHistory(changes)
	return nil
}

// History returns the recent past; without KeepHistory the present alone.
func (i *Informer) History() History {
	h := i.core.History()
	return History{
		Snapshot: &Snapshot{h.Snapshot}, Synced: h.Synced,
		Version: h.Version, Oldest: h.Oldest, Next: h.Next, changes: h.Changes,
	}
}
