package dynamicinformer

import (
	"fmt"

	"github.com/crdcache/crdcache/internal/informer"
	"k8s.io/apimachinery/pkg/runtime"
)

// History is the recent sequence of changes of an informer's cache, with the resource versions of the API
// server. A server uses it to answer lists and watches from the cache. See Informer.KeepHistory.
type History struct {
	// Snapshot is the current content. Synced reports whether it has been listed.
	Snapshot *Snapshot
	Synced   bool
	// Namespace is the watched namespace; empty for all. Pruned reports whether fields are dropped.
	Namespace string
	Pruned    bool
	// ResourceVersion is that of the last list, event or bookmark. The content is complete up to it.
	ResourceVersion uint64
	// Oldest is the resource version after which the changes are complete.
	Oldest uint64
	// EpochStart is the resource version at which the epoch began. Oldest grows as changes are dropped.
	EpochStart uint64
	// Epoch changes whenever the history restarts. Changes of different epochs have no common order.
	Epoch int
	// Next is closed when there are more changes, or when the history restarts.
	Next <-chan struct{}

	changes []informer.Change
}

// Change is one change of a History.
type Change struct {
	// Key is "namespace/name" or the name. It shares the object's memory: clone it to keep it alone.
	Key string
	// ResourceVersion is the resource version of the change.
	ResourceVersion uint64
	// Old and New are the object before and after (see Snapshot.Stored). Old is nil for an added object, New
	// for a deleted one. They are shared and must not be changed.
	Old, New runtime.Object
}

// Len returns the number of changes.
func (h History) Len() int { return len(h.changes) }

// At returns change number i. Change 0 is the oldest.
func (h History) At(i int) Change {
	c := h.changes[i]
	before, _ := runtimeObject(c.Old)
	after, _ := runtimeObject(c.New)
	return Change{Key: c.Key, ResourceVersion: c.Version, Old: before, New: after}
}

// KeepHistory makes the informer record the changes of its watch for History: at least the given number of
// the newest changes, and at most twice as many, with the objects before and after. The number must be
// positive; the largest number of all calls applies. A relist, or a type that is deleted, restarts the
// history, because the order of changes is unknown then.
//
// It returns an error for informers that lack objects or fields: with selectors, TweakListOptions, a
// Transform, metadata only, or StorageNone. It also returns an error with StorageObject, with several
// namespaces, because their watches have no common order, and with a Shard, because its ranges may change.
func (i *Informer) KeepHistory(changes int) error {
	o := i.options
	_, isSingle := o.Namespaces.set.Single()
	problem := ""
	switch mode := o.key().storage.Mode; {
	case changes <= 0:
		problem = fmt.Sprintf("the number of changes is %d; it must be positive", changes)
	case !isSingle && !o.Namespaces.set.IsAll():
		problem = "each namespace has its own watch, and their events have no common order"
	case o.selectsObjects():
		problem = "a selector or TweakListOptions limits the objects"
	case o.Shard.orNil() != nil:
		problem = "the ranges of its shard may change"
	case o.Transform != nil:
		problem = "its objects are transformed"
	case mode == StorageNone:
		return i.checkStored()
	case mode == StorageObject || mode == StorageMetadata:
		problem = "its objects are not stored as JSON"
	}
	if problem != "" {
		return fmt.Errorf("%s: cannot keep a history: %s", formatGVR(i.gvr), problem)
	}
	i.core.KeepHistory(changes)
	return nil
}

// History returns the recent changes; without KeepHistory only the current content.
func (i *Informer) History() History {
	h := i.core.History()
	namespace, _ := i.options.Namespaces.set.Single()
	return History{
		Snapshot: &Snapshot{h.Snapshot, i.checkStored()}, Synced: h.Synced, Namespace: namespace,
		Pruned:          i.options.Prune.isSet() || i.options.Keep.isSet(),
		ResourceVersion: h.Version, Oldest: h.Oldest, EpochStart: h.EpochStart, Epoch: h.Epoch, Next: h.Next,
		changes: h.Changes,
	}
}
