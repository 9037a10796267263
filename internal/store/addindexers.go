package store

import (
	"fmt"
	"runtime"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// AddIndexers adds index functions over present and future objects, all or none; readers see the new indexes
// when they are complete, all at once. It fails when a name is taken. If an index function panics, no index
// is added.
//
// It works in three steps: from the first on, writers compute the new values too; the second, the long one,
// runs the index functions over what was there before, without any lock; the third builds the indexes, which
// keeps writers waiting but no reader.
func (s *Store) AddIndexers(indexers cache.Indexers) error {
	if len(indexers) == 0 {
		return nil
	}
	return s.add(named(indexers))
}

// AddExtractor adds the indexes of an extractor as AddIndexers adds index functions. Those whose names are
// given it replaces: readers see them until the new indexes are complete, and then the new ones.
func (s *Store) AddExtractor(e Extractor, replaced ...string) error {
	return s.add(extracting(e), replaced...)
}

func (s *Store) add(a addition, replaced ...string) error {
	added, before, err := s.announce(a, replaced)
	if err != nil {
		return err
	}
	published := false
	defer func() {
		if !published { // an index function has panicked
			s.removeThat(func(f *function) bool { return slices.Contains(added, f) })
		}
	}()
	var failures Failures
	late := make([]lateValues, 0, before.rows.len)
	for r := range before.rows.all {
		late = append(late, lateValues{row: r})
	}
	for some := range slices.Chunk(late, fetchedTogether) {
		fetch(some)
		for k := range some {
			l := &some[k]
			l.hash = hashOf(l.row.key)
			l.values = slices.Clone(added.evaluate(l.row.key, l.row.keptItem(), s.decodedOnce, &failures))
		}
	}
	// What others have announced since then is for them to publish, under whatever name.
	s.publish(added, late, func(f *function) bool {
		return slices.Contains(replaced, f.name) && slices.Contains(before.functions, f) &&
			!slices.Contains(added, f)
	})
	published = true
	failures.to(s.report)
	return nil
}

// announce is the first step. It returns the new functions, and what was written without them.
func (s *Store) announce(a addition, replaced []string) (functions, *Snapshot, error) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	added := a(s.ids)
	stay := slices.DeleteFunc(slices.Clone(next.functions),
		func(f *function) bool { return slices.Contains(replaced, f.name) })
	if taken := stay.taken(added); len(taken) > 0 {
		return nil, nil, fmt.Errorf("indexer conflict: %v", taken)
	}
	next.functions = slices.Concat(next.functions, added)
	s.ids += len(added)
	next.version++
	s.current.Store(next)
	return added, next, nil
}

// lateValues are values of a row that was stored without them.
type lateValues struct {
	row    *row
	hash   uint64 // of the row's key
	values []byte
}

// fetchedTogether is how many objects fetch is for at a time: together they fit into a processor's nearest
// cache.
const fetchedTogether = 32

// fetch has the objects of some rows brought into the processor's cache, all at the same time. Rows are in
// the order of hashes, and so in none in memory: to wait for one object after the other takes longer than
// what is to be done with it.
func fetch(some []lateValues) {
	var objects [fetchedTogether]*packed.Object
	for k := range some {
		objects[k] = some[k].row.object.Load()
	}
	touched := byte(0)
	for _, o := range objects[:len(some)] {
		if o != nil {
			touched += o.Touch()
		}
	}
	runtime.KeepAlive(touched)
}

// hashesOf returns the rows of a trie with the hashes of their keys. To hash a key is to wait for memory, so
// those that are known from before are used, as long as the trie has the same rows in the same places.
func hashesOf(rows *trie[row], late []lateValues) []hashed[*row] {
	list := make([]hashed[*row], 0, rows.len)
	for r := range rows.all {
		if k := len(list); k < len(late) && late[k].row == r {
			list = append(list, hashed[*row]{late[k].hash, r})
		} else {
			list = append(list, hashed[*row]{hashOf(r.key), r})
		}
	}
	return list
}

// publish is the third step. late has the values of the rows from before announce; what was written since has
// them already. Batches that were prepared meanwhile lack the indexes, so that they must not be taken. The
// values of indexes that have been removed go, or each reload of a config would leave some behind.
func (s *Store) publish(added functions, late []lateValues, replaced func(*function) bool) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	next.version++
	next.remove(replaced)
	for _, l := range late {
		l.row.keep(l.row.values().only(next.functions), l.values)
	}
	rows := hashesOf(&next.rows, late)
	var room indexRoom
	for _, f := range added {
		if slices.Contains(next.functions, f) { // and has not been removed meanwhile
			next.indexes = append(next.indexes, buildIndex(f, rows, nil, &room))
		}
	}
	s.current.Store(next)
}

// RemoveIndexes removes indexes by name; names that there are none of do nothing. Snapshots that were taken
// before keep them.
func (s *Store) RemoveIndexes(names ...string) {
	s.removeThat(func(f *function) bool { return slices.Contains(names, f.name) })
}

func (s *Store) removeThat(gone func(*function) bool) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	next.remove(gone)
	s.current.Store(next)
}

// remove takes indexes out of a snapshot that is not published yet.
func (s *Snapshot) remove(gone func(*function) bool) {
	if !slices.ContainsFunc(s.functions, gone) {
		return
	}
	s.functions = slices.DeleteFunc(slices.Clone(s.functions), func(f *function) bool {
		if !gone(f) {
			return false
		}
		f.gone.Store(true)
		return true
	})
	s.indexes = slices.DeleteFunc(s.indexes, func(x index) bool { return x.function.gone.Load() })
	s.version++
}
