package informer

import "github.com/crdcache/crdcache/internal/store"

// PersistableContent is the content of the cache, with the versions from which watches can continue.
type PersistableContent struct {
	Snapshot *store.Snapshot
	// State is the PersistedState of the partitions. It is nil if the content is not that of one stream, or
	// of one stream for each namespace, at a known resource version.
	State PersistedState
	// Namespaces are the resource versions of the partitions with a namespace. If it is nil, everything is at
	// the resource version of Snapshot.
	Namespaces map[string]string
	// Resuming is true while some objects are of an earlier process and unconfirmed. If the only partition
	// has all namespaces, State is nil then.
	Resuming bool
}

// PersistableContent returns the current content. No watch can continue it after a user has written to the
// cache, until the next list, and in shards.
func (i *Informer) PersistableContent() PersistableContent {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := PersistableContent{Snapshot: i.store.Snapshot()}
	for _, p := range i.mu.partitions {
		if p.State == nil || p.resumeVersion == "" {
			continue
		}
		c.State, c.Resuming = p.State, i.mu.unconfirmed.any()
		if p.isAll() {
			if c.Resuming {
				c.State = nil
			}
			return c
		}
		if c.Namespaces == nil {
			c.Namespaces = map[string]string{}
		}
		c.Namespaces[p.Namespace] = p.resumeVersion
	}
	return c
}

// writeDirectly makes a write of a user to the store. The content is then not that of the server.
func (i *Informer) writeDirectly(write func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.mu.partitions {
		p.resumeVersion = ""
	}
	write()
}
