package store

import (
	"fmt"

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
	added, before, err := s.announce(indexers)
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
func (s *Store) announce(indexers cache.Indexers) (functions, *Snapshot, error) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	if taken := next.functions.taken(indexers); len(taken) > 0 {
		return nil, nil, fmt.Errorf("indexer conflict: %v", taken)
	}
	old := len(next.functions)
	next.functions = next.functions.with(indexers, s.ids)
	s.ids += len(indexers)
	next.version++
	s.current.Store(next)
	return next.functions[old:], next, nil
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
		next.indexes = append(next.indexes, buildIndex(f, rows))
	}
	s.current.Store(next)
}
