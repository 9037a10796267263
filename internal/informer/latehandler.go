package informer

import (
	"math"
	"strings"

	"github.com/crdcache/crdcache/internal/informer/delivery"
)

// recordCaughtUpLocked ends the state of late handlers that have received the objects of all partitions.
func (i *Informer) recordCaughtUpLocked() {
	if len(i.mu.partitions) == 0 && i.store.Snapshot().Len() > 0 { // between two incarnations
		return
	}
	least := math.MaxInt
	for _, p := range i.mu.partitions {
		least = min(least, p.listNumber)
	}
	i.mu.handlers.RecordCaughtUp(least, i.HasSynced())
}

// ownersLocked returns the partitions of the objects by key, if there are late handlers.
func (i *Informer) ownersLocked() map[string]*partition {
	if !i.mu.handlers.HasLate(0) {
		return nil
	}
	owners := map[string]*partition{}
	for key, item := range i.store.Snapshot().All {
		for _, p := range i.mu.partitions {
			if strings.HasPrefix(key, p.prefix()) && p.selects(item) {
				owners[key] = p
			}
		}
	}
	return owners
}

// restartLateHandlersLocked makes late handlers receive all objects of the next incarnation. The objects that
// they have received are deleted before.
func (i *Informer) restartLateHandlersLocked() {
	owners := i.ownersLocked()
	i.mu.handlers.RestartLate(func(yield func(int, delivery.Notification) bool) {
		for key, owner := range owners {
			item, _ := i.store.Snapshot().Get(key)
			if !yield(i.listNumberLocked(owner), delivery.DeletedUnobserved(key, item)) {
				return
			}
		}
	})
}
