package informer

import "github.com/crdcache/crdcache/internal/store"

// Checkpoint returns the present content, and the Past of the part that has brought it, if a watch can go on from its
// resource version: if it is what one stream has brought up to that version, and nothing else. It is not while what an
// earlier process kept is not confirmed, where several parts are read one by one, or since somebody has written to the
// cache, until the next list. Then the Past is nil.
func (i *Informer) Checkpoint() (now *store.Snapshot, of Past) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now = i.store.Snapshot()
	if unordered(now.ResourceVersion()) {
		return now, nil
	}
	return now, i.mu.wholeOf
}

// direct has a user write to the store, from which on the content is not what the server has brought.
func (i *Informer) direct(write func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.wholeOf = nil
	write()
}
