package bind

import (
	"maps"
	"slices"

	"github.com/crdcache/crdcache/indexers"
)

// Apply takes another config over, as a whole or not at all: what it needs is prepared first, and an error of
// that changes nothing. Informers of resources of which nothing but indexes differs stay: indexes are added,
// removed and replaced while they run, and queriers that were made before know the old ones until the new
// ones are complete. Where anything else differs, another informer takes the place of the one there was when
// it has synced; until then the old one answers, as the config said before, and Pending says what waits, from
// when, and why. Options.Apply of package reload may call it.
func (b *Binding) Apply(config *indexers.Config) error {
	b.work.Lock()
	defer b.work.Unlock()
	if b.closed {
		return ErrClosed
	}
	if err := b.check(config); err != nil {
		return err
	}
	p := &plan{slots: b.cloneSlots()}
	if err := b.prepare(p, config); err != nil {
		p.undo()
		return err
	}
	b.commit(p, config)
	return nil
}

// plan is a change of a binding before it is made.
type plan struct {
	slots map[place]slot
	// undone and cleaned are what is to be done when the change is given up, and when it has been made.
	undone, cleaned []func()
	// awaited are the targets that take over once they have synced.
	awaited map[place]*Target
}

// undo takes back what was prepared, the last first.
func (p *plan) undo() {
	for _, do := range slices.Backward(p.undone) {
		do()
	}
}

// prepare gets all that a config needs. Callers hold work.
func (b *Binding) prepare(p *plan, config *indexers.Config) error {
	p.awaited = map[place]*Target{}
	for at, s := range p.slots {
		r, ok := config.Resource(at.resource)
		if !ok || !means(r, b.kinds[at.GroupResource]) {
			p.drop(s.serving, s.next)
			delete(p.slots, at)
			continue
		}
		next, err := b.changed(p, at, s, r)
		if err != nil {
			return err
		}
		p.slots[at] = next
	}
	for _, k := range slices.Collect(maps.Values(b.kinds)) {
		for _, r := range config.Resources {
			t, err := b.missing(p.slots, r, k)
			if err != nil {
				return err
			}
			if t != nil {
				p.undone = append(p.undone, t.drop)
				p.slots[place{r.Name, k.GroupResource}] = slot{serving: t}
			}
		}
	}
	return nil
}

// changed gives what a slot holds for a resource of another config.
func (b *Binding) changed(p *plan, at place, s slot, r *indexers.Resource) (slot, error) {
	if s.next != nil {
		if c := difference(s.next.Resource, r); c.InPlace() {
			next, err := p.reindex(s.next, r, c)
			p.awaited[at] = next
			return slot{s.serving, next}, err
		}
	}
	if c := difference(s.serving.Resource, r); c.InPlace() {
		serving, err := p.reindex(s.serving, r, c)
		p.drop(s.next)
		return slot{serving: serving}, err
	}
	gvr, _ := b.kinds[at.GroupResource].gvr(r.Match)
	t, err := b.acquire(r, gvr)
	if err != nil {
		return s, err
	}
	p.undone = append(p.undone, t.drop)
	p.drop(s.next)
	p.awaited[at] = t
	return slot{s.serving, t}, nil
}

// difference is what differs between two resources of one name.
func difference(old, new *indexers.Resource) indexers.Change {
	changes := indexers.Diff(&indexers.Config{Resources: []*indexers.Resource{old}},
		&indexers.Config{Resources: []*indexers.Resource{new}})
	if len(changes) == 0 {
		return indexers.Change{Name: new.Name, Old: old, New: new}
	}
	return changes[0]
}

// reindex changes the indexes of a target.
func (p *plan) reindex(t *Target, r *indexers.Resource, c indexers.Change) (*Target, error) {
	now, undo, clean, err := t.reindexed(r, c)
	if err != nil {
		return nil, err
	}
	p.undone, p.cleaned = append(p.undone, undo), append(p.cleaned, clean)
	return now, nil
}

// drop gives targets up once the change has been made.
func (p *plan) drop(targets ...*Target) {
	for _, t := range targets {
		if t != nil {
			p.cleaned = append(p.cleaned, t.drop)
		}
	}
}

// commit makes a change that was prepared, which cannot fail. Callers hold work.
func (b *Binding) commit(p *plan, config *indexers.Config) {
	b.publish(config, p.slots)
	for _, do := range p.cleaned {
		do()
	}
	for at, t := range p.awaited {
		go b.await(at, t) // ended by the sync, or by the end of the informer or of the claim to it
	}
}

// await has a target take over once its informer has synced.
func (b *Binding) await(at place, t *Target) {
	select {
	case <-t.Informer.HasSyncedChecker().Done():
	case <-t.Informer.Stopped():
		return
	case <-t.dropped:
		return
	}
	b.work.Lock()
	defer b.work.Unlock()
	slots := b.cloneSlots()
	s := slots[at]
	if b.closed || s.next == nil || s.next.handle != t.handle { // given up or taken over meanwhile
		return
	}
	slots[at] = slot{serving: s.next}
	b.publish(b.config(), slots)
	s.serving.drop()
}
