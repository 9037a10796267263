package bind

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/crdcache/crdcache/indexers"
)

// Apply takes another config over. Informers of resources of which nothing but indexes differs stay: indexes are
// added, removed and replaced while they run, and queries see the old ones until the new ones are complete. Where
// anything else differs, another informer takes the place of the one there was, and the old one is released; its
// content is complete once it has synced. A config that lacks something is refused as a whole, with an error, and
// changes nothing. Options.Apply of package reload may call it.
func (b *Binding) Apply(config *indexers.Config) error {
	b.work.Lock()
	defer b.work.Unlock()
	if b.closed {
		return ErrClosed
	}
	if err := b.check(config); err != nil {
		return err
	}
	next := b.cloneTargets()
	var released []*Target
	var errs []error
	for _, c := range indexers.Diff(b.config(), config) {
		for at, t := range next {
			switch {
			case at.resource != c.Name:
			case c.InPlace():
				changed, err := t.reindexed(c)
				errs = append(errs, err)
				next[at] = changed
			default:
				released = append(released, t)
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
	errs = append(errs, b.bind(config, next, slices.Collect(maps.Values(b.kinds))...))
	b.mu.Lock()
	b.mu.config, b.mu.targets = config, next
	b.mu.Unlock()
	for _, t := range released {
		t.handle.Release()
	}
	return errors.Join(errs...)
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
