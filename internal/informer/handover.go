package informer

import (
	"maps"
	"slices"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/store"
)

// DetachedContent is the state of an informer when handlers were detached from it. The handlers have received
// it, or have it in their queues.
type DetachedContent struct {
	knownContent
	// Version is the resource version of the content; empty if there is none.
	Version string
	Synced  bool // HasSynced of the informer
}

// Len returns the number of objects.
func (d *DetachedContent) Len() int { return d.snapshot.Len() }

// knownContent is the content that handlers are notified of: without unconfirmed objects.
type knownContent struct {
	snapshot *store.Snapshot
	hidden   unconfirmedRestore
}

func (i *Informer) knownContentLocked() knownContent {
	return knownContent{i.store.Snapshot(),
		unconfirmedRestore{namespaces: maps.Clone(i.mu.unconfirmed.namespaces)}}
}

func (c *knownContent) get(key string) Item {
	if item, found := c.snapshot.Get(key); found && !c.hidden.has(item) {
		return item
	}
	return nil
}

// All returns the objects.
func (c *knownContent) All(yield func(key string, item Item) bool) {
	c.snapshot.All(func(key string, item Item) bool { return c.hidden.has(item) || yield(key, item) })
}

// Detach removes handlers from the informer so that Attach can continue them. Each handler processes its
// queue, and then its registration ends.
func (i *Informer) Detach(handlers []*delivery.Registration) *DetachedContent {
	i.registering.Lock()
	defer i.registering.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.handlers.Detach(handlers)
	d := &DetachedContent{knownContent: i.knownContentLocked(), Synced: i.HasSynced()}
	d.Version = d.snapshot.ResourceVersion() // also between two incarnations
	for _, p := range i.mu.partitions {
		if d.Version == "" || naming.IsOlder(d.Version, p.observedVersion) {
			d.Version = p.observedVersion
		}
	}
	return d
}

// Handover is the content that previous registrations have, as seen by an informer that continues them.
type Handover struct {
	From []*DetachedContent
	// Owns reports whether the informer is responsible for a key.
	Owns func(key string) bool
	// LeftShard reports whether a missing object has left the shard, rather than the selection. Regained
	// reports whether an object has left the shard and returned since Detach.
	LeftShard, Regained func(Item) bool
}

// Attach adds handlers that were detached. previous has the registrations of each handler. When these have
// finished, the handler receives the difference between their content and that of the informer, and then
// further events. It fails after the stop.
func (i *Informer) Attach(h Handover, previous [][]*delivery.Registration) ([]*delivery.Registration, error) {
	next := naming.Map(previous, func(p []*delivery.Registration) *delivery.Registration {
		return delivery.Continue(&i.delivery, p, i.selectsObjects.Load())
	})
	i.registering.Lock()
	defer i.registering.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.state == StateStopped {
		return nil, ErrStopped
	}
	var l delivery.List
	var leaving []delivery.Notification
	if len(next) > 0 {
		l.Changes, leaving = i.differencesLocked(h)
		l.Initial = slices.ContainsFunc(h.From, func(d *DetachedContent) bool { return !d.Synced })
	}
	for _, r := range next {
		i.mu.handlers.Add(r, i.mu.state != StateNew)
		r.PushDifferences(leaving, l, i.HasSynced())
		r.Start()
	}
	return next, nil
}

// differencesLocked returns the changes from the content of the previous informers, and the objects that have
// left the shard, which precede the changes. Objects with an unchanged resource version do not count.
func (i *Informer) differencesLocked(h Handover) (changes delivery.ChangeSlice,
	leaving []delivery.Notification) {
	format, now := i.store.Format(), i.knownContentLocked()
	for _, from := range h.From {
		for key, old := range from.All {
			next, regained := now.get(key), h.Regained(old)
			switch {
			case !h.Owns(key):
			case regained, next == nil && h.LeftShard(old):
				leaving = append(leaving,
					delivery.LeftShard(format.Item(old))) // the informers may have different formats
				if next != nil {
					changes = append(changes, store.Change{Key: key, New: next})
				}
			case next == nil || !store.SameVersion(old, next):
				changes = append(changes, store.Change{Key: key, Old: format.Item(old), New: next})
			}
		}
	}
	for key, next := range now.All {
		known := func(d *DetachedContent) bool { return d.get(key) != nil }
		if !slices.ContainsFunc(h.From, known) {
			changes = append(changes, store.Change{Key: key, New: next})
		}
	}
	return changes, leaving
}
