package informer

import (
	"slices"
	"strconv"

	"github.com/crdcache/crdcache/internal/store"
)

// History answers reads at, and watches from, recent resource versions of a cache. dynamicinformer.History
// describes its fields. Changes are in the order of their versions.
type History struct {
	Snapshot                    *store.Snapshot
	Synced                      bool
	Version, Oldest, EpochStart uint64
	Changes                     []Change
	Epoch                       int
	Next                        <-chan struct{}
}

// Change is a change of one object. Old is nil if the object was created, New if it was deleted.
type Change struct {
	Key      string
	Version  uint64
	Old, New Item
}

// changeLog has the last changes of a cache. It is guarded by Informer.mu. The zero value records nothing.
type changeLog struct {
	minChanges int // the least number of changes; 0 means no history
	log        []Change
	// oldest, version and epochStart have the meaning of History's.
	oldest, version, epochStart uint64

	epoch   int
	changed chan struct{} // nil while no caller waits
}

// KeepHistory makes the informer record changes from now on. It keeps at least the given number of the last
// changes; the largest number of several calls counts.
func (i *Informer) KeepHistory(changes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.log.minChanges == 0 {
		i.mu.log.reset(i.store.Snapshot().ResourceVersion())
	}
	i.mu.log.minChanges = max(i.mu.log.minChanges, changes)
}

// History returns the recorded changes and the current content.
func (i *Informer) History() History {
	i.mu.Lock()
	defer i.mu.Unlock()
	l := &i.mu.log
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return History{
		Snapshot: i.store.Snapshot(), Synced: i.HasSynced(),
		Version: l.version, Oldest: l.oldest, Changes: l.log[:len(l.log):len(l.log)],
		EpochStart: l.epochStart,
		Epoch:      l.epoch, Next: l.changed,
	}
}

// record records a change by a watch event.
func (l *changeLog) record(key, version string, old, next Item) {
	if l.minChanges == 0 {
		return
	}
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil || v <= l.version {
		// Versions of several watches do not increase, so the changes have no order.
		l.reset(strconv.FormatUint(max(v, l.version), 10))
		return
	}
	if len(l.log)-l.minChanges >= l.minChanges { // without an overflow
		dropped := len(l.log) - l.minChanges
		l.oldest = l.log[dropped-1].Version
		l.log = slices.Clone(l.log[dropped:]) // readers go on with the old one
	}
	l.log = append(l.log, Change{Key: key, Version: v, Old: old, New: next})
	l.version = v
	l.notify()
}

// recordPut records that a prepared object has been stored. old is the object that it replaces, or nil.
func (l *changeLog) recordPut(stored store.PreparedItem, old Item) {
	switch {
	case old == nil || store.SameUID(old, stored.Item) && !store.SameVersion(old, stored.Item):
		l.record(stored.Key, stored.ResourceVersion, old, stored.Item)
	case store.SameUID(old, stored.Item):
		l.advanceTo(stored.ResourceVersion)
	default: // a deletion has been missed
		l.reset(stored.ResourceVersion)
	}
}

// advanceTo records that there are no changes up to a version.
func (l *changeLog) advanceTo(version string) {
	if v, err := strconv.ParseUint(version, 10, 64); l.minChanges > 0 && err == nil && v > l.version {
		l.version = v
		l.notify()
	}
}

// reset discards the changes before a list, because a list has no order of changes.
func (l *changeLog) reset(version string) {
	v, _ := strconv.ParseUint(version, 10, 64) // 0 if the cache is empty
	l.log, l.oldest, l.version, l.epochStart = nil, v, v, v
	l.epoch++
	l.notify()
}

func (l *changeLog) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
