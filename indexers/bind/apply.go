package bind

import (
	"errors"
	"fmt"
	"maps"

	"github.com/crdcache/crdcache/indexers"
)

// Apply takes another config over. Informers of resources of which nothing but indexes differs stay: indexes are
// added, removed and replaced while they run, and queries see the old ones until the new ones are complete. Where
// anything else differs, another informer takes the place of the one there was, and the old one is released; its
// content is complete once it has synced. A config that lacks something is refused as a whole, with an error, and
// changes nothing. It works for Options.Apply of package reload.
func (b *Binding) Apply(config *indexers.Config) error {
	b.work.Lock()
	defer b.work.Unlock()
	if b.closed {
		return ErrClosed
	}
	if err := b.check(config); err != nil {
		return err
	}
	old := b.config()
	next := b.cloneTargets()
	var release []*Target
	var errs []error
	for _, c := range indexers.Diff(old, config) {
		for at, t := range next {
			switch {
			case at.resource != c.Name:
			case c.InPlace():
				changed, err := t.reindexed(c)
				errs = append(errs, err)
				next[at] = changed
			default:
				release = append(release, t)
				delete(next, at)
			}
		}
	}
	for at, t := range next {
		if r, ok := config.Resource(at.resource); ok && t.Resource != r { // an equal one of the new config
			now := *t
			now.Resource = r
			next[at] = &now
		}
	}
	b.mu.Lock()
	b.mu.config, b.mu.targets = config, next
	b.mu.Unlock()
	errs = append(errs, b.bindAll(config))
	for _, t := range release {
		t.handle.Release()
	}
	return errors.Join(errs...)
}

func (b *Binding) cloneTargets() map[place]*Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.mu.targets)
}

// reindexed changes the indexes of a target and returns what it is then.
func (t *Target) reindexed(c indexers.Change) (*Target, error) {
	now := *t
	now.Resource = c.New
	removed := make([]string, len(c.Removed))
	for i, index := range c.Removed {
		removed[i] = index.Name
	}
	if len(c.Added) == 0 {
		t.Informer.RemoveIndexes(removed...)
		return &now, nil
	}
	functions := indexers.CompileIndexes(c.Added...)
	if err := t.Informer.AddIndexes(functions, removed...); err != nil {
		return t, fmt.Errorf("bind: resource %q: %w", c.Name, err)
	}
	now.functions = append(t.functions[:len(t.functions):len(t.functions)], functions)
	return &now, nil
}
