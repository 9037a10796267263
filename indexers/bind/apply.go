package bind

import (
	"maps"
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
	p := &plan{slots: b.cloneSlots()}
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

// rollBack reverts the prepared changes in reverse order.
func (p *plan) rollBack() {
	for _, do := range slices.Backward(p.onAbandon) {
		do()
	}
}

// prepare acquires everything that a config needs. Callers hold changeLock.
func (b *Binding) prepare(p *plan, config *indexers.Config) error {
	p.switchAfterSync = map[slotKey]*Target{}
	for at, s := range p.slots {
		r, ok := config.Resource(at.resource)
		if !ok || !matches(r, b.kinds[at.GroupResource]) {
			p.releaseOnCommit(s.serving, s.replacement)
			delete(p.slots, at)
			continue
		}
		next, err := b.changedSlot(p, at, s, r)
		if err != nil {
			return err
		}
		p.slots[at] = next
	}
	for _, k := range slices.Collect(maps.Values(b.kinds)) {
		for _, r := range config.Resources {
			t, err := b.newTargetIfMissing(p.slots, r, k)
			if err != nil {
				return err
			}
			if t != nil {
				p.onAbandon = append(p.onAbandon, t.release)
				p.slots[slotKey{r.Name, k.GroupResource}] = resourceBinding{serving: t}
			}
		}
	}
	return nil
}

func (b *Binding) changedSlot(p *plan, at slotKey, s resourceBinding,
	r *indexers.Resource) (resourceBinding, error) {
	if s.replacement != nil {
		if c := indexers.DiffResources(s.replacement.Resource, r); c.InPlace() {
			next, err := p.reindex(s.replacement, r, c)
			p.switchAfterSync[at] = next
			return resourceBinding{s.serving, next}, err
		}
	}
	if c := indexers.DiffResources(s.serving.Resource, r); c.InPlace() {
		serving, err := p.reindex(s.serving, r, c)
		p.releaseOnCommit(s.replacement)
		return resourceBinding{serving: serving}, err
	}
	gvr, _ := b.kinds[at.GroupResource].gvr(r.Match)
	t, err := b.acquire(r, gvr)
	if err != nil {
		return s, err
	}
	p.onAbandon = append(p.onAbandon, t.release)
	p.releaseOnCommit(s.replacement)
	p.switchAfterSync[at] = t
	return resourceBinding{s.serving, t}, nil
}

func (p *plan) reindex(t *Target, r *indexers.Resource, c indexers.Change) (*Target, error) {
	changed, undo, dropRemoved, err := t.reindexed(r, c)
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
	for _, do := range p.onCommit {
		do()
	}
	for at, t := range p.switchAfterSync {
		// ends with the sync, the end of the informer, or the release of the target
		go b.switchAfterSync(at, t)
	}
}

// switchAfterSync makes a target the serving one once its informer has synced.
func (b *Binding) switchAfterSync(at slotKey, t *Target) {
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
	s := slots[at]
	if b.closed || s.replacement == nil || s.replacement.handle != t.handle { // superseded or abandoned
		return
	}
	slots[at] = resourceBinding{serving: s.replacement}
	b.publish(b.config(), slots)
	s.serving.release()
}
