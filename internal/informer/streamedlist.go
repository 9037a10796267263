package informer

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/internal/store"
)

// streamedPart is the number of objects that a streamedList retains.
const streamedPart = 256

// streamedList is a relist of a store without objects, whose objects would take many times the memory of the
// store. Parts of it reach the store and the handlers as they arrive, and deletions follow at the end.
type streamedList struct {
	*partition
	listed map[string]bool // keys of the store
	part   []store.KeyedItem
	// repeated is set if the server has listed two objects with one key. A collected list reports them.
	repeated bool
}

// streamsList reports whether the next watch-list is streamed. Handlers must have received the objects before.
func (p *partition) streamsList() bool {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.store.StoresObjects() && p.transform == nil && p.hasListed && !p.lacksObjectsLocked() &&
		p.Selection == nil && p.lastList.incomplete == nil && !i.mu.unconfirmed.any()
}

func (l *streamedList) isRepeated() bool { return l != nil && l.repeated }

// add applies an initial event.
func (l *streamedList) add(event watch.EventType, key string, item Item) error {
	if event != watch.Added {
		if err := l.flush(); err != nil {
			return err
		}
		stored, found := l.informer.store.Snapshot().Get(key)
		if event == watch.Modified || found && store.SameUID(stored, item) {
			delete(l.listed, key)
		}
	}
	if event == watch.Deleted {
		return nil
	}
	l.informer.mutations.AddObject(item)
	l.part = append(l.part, store.KeyedItem{Key: key, Item: item})
	if len(l.part) < streamedPart {
		return nil
	}
	return l.flush()
}

// flush stores the retained objects.
func (l *streamedList) flush() error {
	prepared := make([]store.PreparedItem, len(l.part))
	for done := len(l.part) == 0; !done; {
		for n, o := range l.part {
			prepared[n] = l.informer.store.Prepare(o)
		}
		var err error
		if done, err = l.commitList(prepared, nil, ""); err != nil {
			return err
		}
	}
	snapshot := l.informer.store.Snapshot()
	for _, o := range prepared {
		l.repeated = l.repeated || l.listed[o.Key]
		l.listed[snapshot.OwnKey(o.Key)] = true
	}
	l.part = nil
	return nil
}

// replace stores the rest, and removes the objects that are not listed. It does not serve late handlers.
func (l *streamedList) replace(version string) error {
	if err := l.flush(); err != nil {
		return err
	}
	l.lastList = listOutcome{}
	l.ListerWatcher.ListReceived(nil)
	l.isStreamed = true
	_, err := l.commitList(nil, l.listed, version)
	if l.isStreamed = false; err == nil {
		l.reportListed()
	}
	return err
}
