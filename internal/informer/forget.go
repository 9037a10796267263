package informer

import "github.com/crdcache/crdcache/internal/store"

// Forget ends what the past generation showed: the cache is emptied; each handler gets what is still
// queued for it and then, once for each object it was shown, an OnDelete with cache.DeletedFinalStateUnknown;
// and HasSynced turns false again, for the informer and its handlers, until the next generation's first list.
// The next generation may begin at once: what it delivers queues up behind.
//
// It fails with ErrRunning while a generation runs and with ErrStopped after the stop. It does not wait.
func (i *Informer) Forget() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, err := step(i.mu.state, inputForget); err != nil {
		return err
	}
	changes := i.clearLocked()
	i.tellOfLocked(changes, false, false)
	if i.synced.Load().reached() {
		i.synced.Store(newSyncPoint())
		for _, r := range i.mu.handlers {
			r.synced.Store(newSyncPoint())
		}
	}
	return nil
}

// clearLocked empties the store.
func (i *Informer) clearLocked() []store.Change {
	for {
		if changes, ok := i.store.Replace(i.store.PrepareAll(nil), ""); ok {
			return changes // indexers may be added at any time, but hardly again and again
		}
	}
}
