package bind

import (
	"cmp"
	"slices"

	"github.com/crdcache/crdcache/indexers"
)

// Apply replaces the config atomically: it prepares everything first, and an error changes nothing. An
// informer is kept if only indexes of its resource differ. Its indexes are then changed while it runs, and
// existing queriers use the old indexes until the new ones are complete. For other differences, a new
// informer replaces the old one once it has synced. Until then the old one answers with the old config, and
// Pending returns the waiting change with its reason. Apply can be called by Options.Apply of package reload.
func (b *Binding) Apply(config *indexers.Config) error {
	b.changeLock.Lock()
	defer b.changeLock.Unlock()
	if b.closed {
		return ErrClosed
	}
	if err := b.check(config); err != nil {
		return err
	}
	p := b.newPlan()
	if err := b.prepare(p, config); err != nil {
		p.rollBack()
		return err
	}
	b.commit(p, config)
	return nil
}

// plan is a prepared change of a binding.
type plan struct {
	slots map[slotKey]resourceBinding
	// onAbandon and onCommit run when the change is abandoned or committed.
	onAbandon, onCommit []func()
	switchAfterSync     map[slotKey]*Target
}

func (b *Binding) newPlan() *plan {
	return &plan{slots: b.cloneSlots(), switchAfterSync: map[slotKey]*Target{}}
}

// rollBack reverts the prepared changes in reverse order.
func (p *plan) rollBack() {
	for _, undo := range slices.Backward(p.onAbandon) {
		undo()
	}
}

// prepare acquires everything that a config needs. Callers hold changeLock.
func (b *Binding) prepare(p *plan, config *indexers.Config) error {
	for key, s := range p.slots {
		if r, ok := config.Resource(key.resource); !ok || !matches(r, b.types[key.GroupResource]) {
			p.releaseOnCommit(s.serving, s.replacement)
			delete(p.slots, key)
		}
	}
	for _, typ := range b.types {
		for _, r := range config.Resources {
			if err := b.bind(p, r, typ); err != nil {
				return err
			}
		}
	}
	return nil
}

// bind plans the targets of a resource for a type: the first one, one with the changed resource, or one in
// another version because the old one is no longer served. An error leaves the plan unchanged.
func (b *Binding) bind(p *plan, r *indexers.Resource, typ resourceType) error {
	if !matches(r, typ) {
		return nil
	}
	key := slotKey{r.Name, typ.GroupResource}
	slot := p.slots[key]
	newest := cmp.Or(slot.replacement, slot.serving)
	if newest != nil && newest.Resource != r {
		if reindexed, err := p.reindexSlot(key, r); reindexed || err != nil {
			return err
		}
	} else if newest != nil && (r.Match.Version != "" || slices.Contains(typ.versions, newest.GVR.Version)) {
		return nil
	}
	gvr, _ := typ.gvr(r.Match)
	t, err := b.acquire(r, gvr)
	if err != nil {
		return err
	}
	p.onAbandon = append(p.onAbandon, t.release)
	if newest == nil {
		p.slots[key] = resourceBinding{serving: t}
		return nil
	}
	p.releaseOnCommit(slot.replacement)
	p.slots[key], p.switchAfterSync[key] = resourceBinding{slot.serving, t}, t
	return nil
}

// reindexSlot changes only the indexes of a target, if the resource differs in nothing else.
func (p *plan) reindexSlot(key slotKey, r *indexers.Resource) (reindexed bool, err error) {
	slot := p.slots[key]
	if slot.replacement != nil {
		if indexers.DiffResources(slot.replacement.Resource, r).InPlace() {
			if slot.replacement, err = p.reindex(slot.replacement, r); err == nil {
				p.slots[key], p.switchAfterSync[key] = slot, slot.replacement
			}
			return true, err
		}
	}
	if !indexers.DiffResources(slot.serving.Resource, r).InPlace() {
		return false, nil
	}
	serving, err := p.reindex(slot.serving, r)
	if err == nil {
		p.releaseOnCommit(slot.replacement)
		p.slots[key] = resourceBinding{serving: serving}
	}
	return true, err
}

func (p *plan) reindex(t *Target, r *indexers.Resource) (*Target, error) {
	changed, undo, dropRemoved, err := t.reindexed(r)
	if err != nil {
		return nil, err
	}
	p.onAbandon, p.onCommit = append(p.onAbandon, undo), append(p.onCommit, dropRemoved)
	return changed, nil
}

// releaseOnCommit releases targets when the change is committed.
func (p *plan) releaseOnCommit(targets ...*Target) {
	for _, t := range targets {
		if t != nil {
			p.onCommit = append(p.onCommit, t.release)
		}
	}
}

// commit applies a prepared change. It cannot fail. Callers hold changeLock.
func (b *Binding) commit(p *plan, config *indexers.Config) {
	b.publish(config, p.slots)
	for _, f := range p.onCommit {
		f()
	}
	for key, t := range p.switchAfterSync {
		// ends with the sync, the end of the informer, or the release of the target
		go b.switchAfterSync(key, t)
	}
}

// switchAfterSync makes a target the serving one once its informer has synced.
func (b *Binding) switchAfterSync(key slotKey, t *Target) {
	select {
	case <-t.Informer.Synced():
	case <-t.Informer.Stopped():
		return
	case <-t.released:
		return
	}
	b.changeLock.Lock()
	defer b.changeLock.Unlock()
	slots := b.cloneSlots()
	s := slots[key]
	if b.closed || s.replacement == nil || s.replacement.view.handle != t.view.handle { // superseded
		return
	}
	slots[key] = resourceBinding{serving: s.replacement}
	b.publish(b.config(), slots)
	s.serving.release()
}
