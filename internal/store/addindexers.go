package store

import (
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"
)

// AddIndexers adds index functions over present and future objects, all or none; readers see the new indexes
// when they are complete, all at once. It fails when a name is taken.
//
// It works in three steps: from the first on, writers compute the new values too; the second, the long one, runs
// the index functions over what was there before, without any lock; the third builds the indexes, which keeps
// writers waiting but no reader.
func (s *Store) AddIndexers(indexers cache.Indexers) error {
	if len(indexers) == 0 {
		return nil
	}
	return s.add(named(indexers))
}

// AddExtractor adds the indexes of an extractor as AddIndexers adds index functions.
func (s *Store) AddExtractor(e Extractor) error { return s.add(extracting(e)) }

func (s *Store) add(a addition) error {
	added, before, err := s.announce(a)
	if err != nil {
		return err
	}
	var failures Failures
	late := make(map[*row]values, before.rows.len)
	for r := range before.rows.all {
		late[r] = added.evaluate(r.key, r.item, s.form.Object, &failures)
	}
	s.publish(added, late)
	failures.to(s.report)
	return nil
}

// announce is the first step. It returns the new functions, and what was written without them.
func (s *Store) announce(a addition) (functions, *Snapshot, error) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	added := a(s.ids)
	if taken := next.functions.taken(added); len(taken) > 0 {
		return nil, nil, fmt.Errorf("indexer conflict: %v", taken)
	}
	next.functions = slices.Concat(next.functions, added)
	s.ids += len(added)
	next.version++
	s.current.Store(next)
	return added, next, nil
}

// publish is the third step. late has the values of the rows from before announce; what was written since has
// them already.
func (s *Store) publish(added functions, late map[*row]values) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	rows := make([]*row, 0, next.rows.len)
	for r := range next.rows.all {
		r.values += late[r]
		rows = append(rows, r)
	}
	for _, f := range added {
		if slices.Contains(next.functions, f) { // and has not been removed meanwhile
			next.indexes = append(next.indexes, buildIndex(f, rows))
		}
	}
	s.current.Store(next)
}

// RemoveIndexes removes indexes by name; names that there are none of do nothing. Snapshots that were taken
// before keep them.
func (s *Store) RemoveIndexes(names ...string) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	removed := func(f *function) bool { return slices.Contains(names, f.name) }
	next.functions = slices.DeleteFunc(slices.Clone(next.functions), removed)
	next.indexes = slices.DeleteFunc(next.indexes, func(x index) bool { return removed(x.function) })
	next.version++
	s.current.Store(next)
}
