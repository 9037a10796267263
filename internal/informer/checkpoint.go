package informer

import "github.com/crdcache/crdcache/internal/store"

// Checkpoint returns the present content, and the Past of the part that has brought it, if a watch can go on from its
// resource version: if it is what one stream has brought up to that version, and nothing else. It is not while what an
// earlier process kept is not confirmed, where several parts are read one by one, or since somebody has written to the
// cache, until the next list. Then the Past is nil. resuming says that it will not be when what is shown is confirmed.
func (i *Informer) Checkpoint() (now *store.Snapshot, of Past, resuming bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now = i.store.Snapshot()
	if unordered(now.ResourceVersion()) || i.mu.wholeOf == nil {
		return now, nil, false
	}
	if i.mu.unconfirmed {
		return now, nil, true
	}
	return now, i.mu.wholeOf, false
}

// direct has a user write to the store, from which on the content is not what the server has brought.
func (i *Informer) direct(write func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.wholeOf = nil
	write()
}
