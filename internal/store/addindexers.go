package store

import (
	"fmt"
	"runtime"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// AddIndexers adds index functions for present and future objects. Readers see all new indexes at the same
// time, when they are complete. If a name is already used, or an index function panics, no index is added.
//
// It works in three steps. First, it announces the functions, so that writers compute the new values too.
// Second, it runs the index functions over the existing objects without holding a lock, which takes longest.
// Third, it builds the indexes, which blocks writers but not readers.
func (s *Store) AddIndexers(indexers cache.Indexers) error {
	if len(indexers) == 0 {
		return nil
	}
	return s.addFunctions(indexFunctions(indexers), func() error { return nil })
}

// AddExtractor adds the indexes of an extractor like AddIndexers. It replaces the indexes with the given
// names: readers see the old ones until the new ones are complete. A BuildObserver can end it.
func (s *Store) AddExtractor(e Extractor, replaced ...string) error {
	check := func() error { return nil }
	if observer, ok := e.(BuildObserver); ok {
		check = observer.CheckBuild
	}
	return s.addFunctions(extractorFunctions(e), check, replaced...)
}

func (s *Store) addFunctions(create functionFactory, check func() error, replaced ...string) error {
	if !s.StoresObjects() {
		return ErrNotStored
	}
	added, announced, err := s.publishFunctions(create, replaced)
	if err != nil {
		return err
	}
	published := false
	defer func() {
		if !published { // an index function panicked, or check failed
			s.removeIndexes(func(f *function) bool { return slices.Contains(added, f) })
		}
	}()
	var failures Failures
	computed := make([]computedValues, 0, announced.rows.len)
	for r := range announced.rows.all {
		computed = append(computed, computedValues{row: r})
	}
	for chunk := range slices.Chunk(computed, prefetchBatch) {
		prefetch(chunk)
		for k := range chunk {
			values := &chunk[k]
			values.hash = hashOf(keyOf(values.row))
			encoded := added.evaluate(keyOf(values.row), values.row.item(), s.decodedOnce, &failures)
			values.encoded = slices.Clone(encoded)
			if err := check(); err != nil {
				return err
			}
		}
	}
	// Concurrent calls may have announced functions since then. Their incomplete indexes stay.
	s.publishIndexes(added, computed, func(f *function) bool {
		return slices.Contains(replaced, f.name) && slices.Contains(announced.functions, f) &&
			!slices.Contains(added, f)
	})
	published = true
	failures.reportTo(s.report)
	return nil
}

// publishFunctions is the first step. It returns them, and the snapshot whose rows lack their values.
func (s *Store) publishFunctions(create functionFactory, replaced []string) (functions, *Snapshot, error) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	added := create(s.functionsAdded)
	remaining := slices.DeleteFunc(slices.Clone(next.functions),
		func(f *function) bool { return slices.Contains(replaced, f.name) })
	if conflicts := remaining.conflicts(added); len(conflicts) > 0 {
		return nil, nil, fmt.Errorf("indexer conflict: %v", conflicts)
	}
	next.functions = slices.Concat(next.functions, added)
	s.functionsAdded += len(added)
	next.version++
	s.current.Store(next)
	return added, next, nil
}

// computedValues are the new values of a row that lacks them.
type computedValues struct {
	row     *storedRow
	hash    uint64 // hash of the row's key
	encoded []byte
}

// prefetchBatch is the number of objects to prefetch together. They fit into the first-level cache.
const prefetchBatch = 32

// prefetch loads the objects of some rows into the processor's cache. Rows are in the order of hashes, and
// thus spread over memory, so cache misses one after the other would take longer than the evaluation.
func prefetch(values []computedValues) {
	var objects [prefetchBatch]*packed.Object
	for k := range values {
		objects[k] = values[k].row.packed()
	}
	touched := byte(0)
	for _, o := range objects[:len(values)] {
		if o != nil {
			touched += o.Prefetch()
		}
	}
	runtime.KeepAlive(touched)
}

// hashesOf returns the rows of a trie with the hashes of their keys. Reading a key is a cache miss. It
// therefore reuses the hashes of computed while the trie has the same rows in the same order.
func hashesOf(rows *trie[storedRow], computed []computedValues) []hashedEntry[*storedRow] {
	list := make([]hashedEntry[*storedRow], 0, rows.len)
	for r := range rows.all {
		if k := len(list); k < len(computed) && computed[k].row == r {
			list = append(list, hashedEntry[*storedRow]{computed[k].hash, r})
		} else {
			list = append(list, hashedEntry[*storedRow]{hashOf(keyOf(r)), r})
		}
	}
	return list
}

// publishIndexes is the third step. computed has the values of the rows from before publishFunctions; later
// rows already have them. It changes the version, because batches prepared in between lack the indexes. It
// drops the values of removed indexes, which would otherwise accumulate with each reload of a config.
func (s *Store) publishIndexes(added functions, computed []computedValues, replaced func(*function) bool) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	next.version++
	next.dropIndexes(replaced)
	for _, values := range computed {
		values.row.setValues(values.row.values().selectFunctions(next.functions), values.encoded)
	}
	rows := hashesOf(&next.rows, computed)
	var scratch indexScratch
	for _, f := range added {
		if slices.Contains(next.functions, f) { // not removed in the meantime
			next.indexes = append(next.indexes, buildIndex(f, rows, nil, &scratch))
		}
	}
	s.current.Store(next)
}

// RemoveIndexes removes indexes by name and ignores unknown names. Existing snapshots keep them.
func (s *Store) RemoveIndexes(names ...string) {
	s.removeIndexes(func(f *function) bool { return slices.Contains(names, f.name) })
}

func (s *Store) removeIndexes(match func(*function) bool) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	next.dropIndexes(match)
	s.current.Store(next)
}

// dropIndexes removes indexes from an unpublished snapshot.
func (s *Snapshot) dropIndexes(match func(*function) bool) {
	if !slices.ContainsFunc(s.functions, match) {
		return
	}
	s.functions = slices.DeleteFunc(slices.Clone(s.functions), func(f *function) bool {
		if !match(f) {
			return false
		}
		f.removed.Store(true)
		return true
	})
	s.indexes = slices.DeleteFunc(s.indexes, func(x index) bool { return x.function.removed.Load() })
	s.version++
}
