package informer

import "github.com/crdcache/crdcache/internal/store"

// Checkpoint is a content at one moment, and what a watch can go on from it by.
type Checkpoint struct {
	Now *store.Snapshot
	// Of is the Past of what has brought it; nil where no watch can go on from it: where it is not what one
	// stream has brought up to one resource version, for everything or for each of some namespaces, and
	// nothing else.
	Of Past
	// Namespaces are those that are read one by one and can be gone on from, with their resource versions;
	// nil: everything is at that of Now.
	Namespaces map[string]string
	// Resuming says that some of it is of an earlier process, and not confirmed. Where everything is read at
	// once, Of is nil until it is.
	Resuming bool
}

// Checkpoint returns the present content. While what an earlier process kept is not confirmed, since somebody
// has written to the cache, until the next list, and in shards, no watch can go on from it.
func (i *Informer) Checkpoint() Checkpoint {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := Checkpoint{Now: i.store.Snapshot()}
	for _, p := range i.mu.parts {
		if p.past != nil && p.at != "" {
			if c.Namespaces == nil {
				c.Of, c.Namespaces = p.past, map[string]string{}
			}
			c.Namespaces[p.namespace()] = p.at
		}
	}
	if i.mu.wholeOf != nil && !unordered(c.Now.ResourceVersion()) {
		c.Of = i.mu.wholeOf
	}
	c.Resuming = c.Of != nil && i.mu.unconfirmed.any()
	if i.mu.unconfirmed.all {
		c.Of = nil
	}
	return c
}

// direct has a user write to the store, from which on the content is not what the server has brought.
func (i *Informer) direct(write func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.wholeOf = nil
	for _, p := range i.mu.parts {
		p.at = ""
	}
	write()
}
