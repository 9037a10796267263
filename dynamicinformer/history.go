package dynamicinformer

import (
	"fmt"

	"github.com/crdcache/crdcache/internal/informer"
)

// History is the recent past of an informer's cache: how its content has become what it is, with the resource
// versions of the API server. It is what a server needs that has others list and watch the cache. See
// Informer.KeepHistory.
type History struct {
	// Snapshot is the present content. Synced says whether it has been listed.
	Snapshot *Snapshot
	Synced   bool
	// Namespace is the only one that is followed; empty for all. Pruned says that parts of the objects are
	// left out.
	Namespace string
	Pruned    bool
	// Version is the resource version up to which the content is complete: that of the last list, event or
	// bookmark.
	Version uint64
	// Oldest is the resource version since which changes are complete.
	Oldest uint64
	// Began is the resource version at which the epoch began. Oldest is larger once older changes were
	// dropped.
	Began uint64
	// Epoch is another number whenever what was before has been forgotten: changes of two epochs have no
	// common order.
	Epoch int
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
	// Old and New are the object before and after, as it is kept (see Snapshot.Stored): Old is nil for one
	// that appeared, New for one that was deleted. They are shared and must not be changed.
	Old, New any
}

// Len counts the changes.
func (h History) Len() int { return len(h.changes) }

// At returns a change by its number, from 0; the oldest is the first.
func (h History) At(i int) Change { return Change(h.changes[i]) }

// KeepHistory has the informer remember the changes that its watch brings from now on, for History: at least
// the last of them, as many as are asked for, and up to twice as many, with the objects as they were before
// and after. Of several calls the largest number counts, which must be positive. A list after the first, and
// a type that goes, end the history: in which order things have happened, nobody knows.
//
// It fails for views that are no copy of a type, of which the server's lists and watches could be answered:
// those with selectors, with requests of the user's own, with a transform, or of metadata alone. It also
// fails for objects that are kept decoded, for several namespaces, whose watches have no common order, and
// for shards, whose ranges may change.
func (i *Informer) KeepHistory(changes int) error {
	o := i.options
	_, one := o.Namespaces.set.Only()
	because := ""
	switch mode := o.view().storage.Mode; {
	case changes <= 0:
		because = fmt.Sprintf("%d changes are not positive", changes)
	case !one && !o.Namespaces.set.IsAll():
		because = "several namespaces are watched one by one, without a common order"
	case o.LabelSelector != nil || o.FieldSelector != nil || o.TweakListOptions != nil:
		because = "it has a part of the objects"
	case o.Shard.followed() != nil:
		because = "it has a part of the objects, which may change"
	case o.Transform != nil:
		because = "its objects are transformed"
	case mode == StorageObject || mode == StorageMetadata:
		because = "its objects are not kept as JSON"
	}
	if because != "" {
		return fmt.Errorf("%s: no history is kept: %s", formatGVR(i.gvr), because)
	}
	i.core.KeepHistory(changes)
	return nil
}

// History returns the recent past; without KeepHistory the present alone.
func (i *Informer) History() History {
	h := i.core.History()
	namespace, _ := i.options.Namespaces.set.Only()
	return History{
		Snapshot: &Snapshot{h.Snapshot}, Synced: h.Synced, Namespace: namespace,
		Pruned:  i.options.Prune.isSet(),
		Version: h.Version, Oldest: h.Oldest, Began: h.Began, Epoch: h.Epoch, Next: h.Next,
		changes: h.Changes,
	}
}
