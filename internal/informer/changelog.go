package informer

import (
	"slices"
	"strconv"

	"github.com/crdcache/crdcache/internal/store"
)

// History is the recent past of a cache: how the content has become what it is.
type History struct {
	// Snapshot is the present content, and Synced says whether it has been listed.
	Snapshot *store.Snapshot
	Synced   bool
	// Version is the resource version up to which the content is complete.
	Version uint64
	// Oldest is the resource version since which Changes are complete. Changes are in the order of their
	// versions, and never change.
	Oldest  uint64
	Changes []Change
	// Began is the resource version at which the epoch began.
	Began uint64
	// Epoch is another number whenever what was before has been forgotten.
	Epoch int
	// Next is closed when any of this changes.
	Next <-chan struct{}
}

// Change is one step of a History. Old is nil for an object that appeared, New for one that was deleted.
type Change struct {
	Key      string
	Version  uint64
	Old, New Item
}

// changeLog remembers the last changes of a cache. It is guarded by Informer.mu; its zero value remembers
// nothing.
type changeLog struct {
	keep int // as many changes at least; 0: there is no history
	log  []Change
	// oldest, version and began are those of History.
	oldest, version, began uint64

	epoch   int
	changed chan struct{} // nil as long as nobody waits
}

// KeepHistory has the informer remember at least the last changes, from now on. Of several calls the largest
// number counts.
func (i *Informer) KeepHistory(changes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.log.keep == 0 {
		i.mu.log.reset(i.store.Snapshot().ResourceVersion())
	}
	i.mu.log.keep = max(i.mu.log.keep, changes)
}

// History returns the recent past; nothing but the present without KeepHistory.
func (i *Informer) History() History {
	i.mu.Lock()
	defer i.mu.Unlock()
	l := &i.mu.log
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return History{
		Snapshot: i.store.Snapshot(), Synced: i.synced.Load().reached(),
		Version: l.version, Oldest: l.oldest, Changes: l.log[:len(l.log):len(l.log)], Began: l.began,
		Epoch: l.epoch, Next: l.changed,
	}
}

// record remembers a change that a watch brought.
func (l *changeLog) record(key, version string, old, next Item) {
	if l.keep == 0 {
		return
	}
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil || v <= l.version {
		// Versions that do not rise are those of several watches, or of none: they put nothing into an order.
		l.reset(strconv.FormatUint(max(v, l.version), 10))
		return
	}
	if len(l.log)-l.keep >= l.keep { // twice as many, without an overflow
		dropped := len(l.log) - l.keep
		l.oldest = l.log[dropped-1].Version
		l.log = slices.Clone(l.log[dropped:]) // readers go on with the old one
	}
	l.log = append(l.log, Change{Key: key, Version: v, Old: old, New: next})
	l.version = v
	l.notify()
}

// replace remembers that a prepared object has been stored in the place of another, or of nothing.
func (l *changeLog) replace(stored store.Prepared, old Item) {
	switch {
	case old == nil || sameUID(old, stored.Item) && !sameVersion(old, stored.Item):
		l.record(stored.Key, stored.ResourceVersion, old, stored.Item)
	case sameUID(old, stored.Item):
		l.reach(stored.ResourceVersion)
	default: // a deletion has been missed
		l.reset(stored.ResourceVersion)
	}
}

// reach remembers that nothing has changed up to a version.
func (l *changeLog) reach(version string) {
	if v, err := strconv.ParseUint(version, 10, 64); l.keep > 0 && err == nil && v > l.version {
		l.version = v
		l.notify()
	}
}

// reset drops the changes before a list, because a list has neither the changes nor their order.
func (l *changeLog) reset(version string) {
	v, _ := strconv.ParseUint(version, 10, 64) // none of an empty cache
	l.log, l.oldest, l.version, l.began = nil, v, v, v
	l.epoch++
	l.notify()
}

func (l *changeLog) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
