package store

import "github.com/crdcache/crdcache/internal/packed"

// ExtractBlocks copies objects out of the blocks in which they were persisted, starting at position from;
// zero is the first position. A block stays in memory as long as one of its objects. ExtractBlocks returns
// after a bounded number of objects, with the position for the next call, or zero after the last block. An
// object that cannot be read remains, and readers get the error. Readers and handlers do not wait.
func (s *Store) ExtractBlocks(from uint64) (next uint64) {
	current := s.current.Load()
	for work := 0; work < sweepRows; {
		var l *leafNode[storedRow]
		l, from = current.rows.leafFrom(from)
		if l != nil {
			work += len(l.entries)
			for _, r := range l.entries {
				if o := r.packed(); o != nil && o.Block() != nil {
					s.extract(o.Block())
					work += sweepRows / 8
				}
			}
		}
		if from == 0 {
			break
		}
	}
	return from
}

// extract copies the objects out of a block.
func (s *Store) extract(block *packed.Block) {
	f, ok := s.format.(*Packed)
	if !ok { // other formats store no blocks
		return
	}
	current := s.current.Load()
	var changes []conversion
	for o := range block.Objects {
		r := current.rows.find(o.Key())
		if r == nil || r.packed() != o { // it has been replaced
			continue
		}
		next, err := o.Decompress()
		if err != nil { // readers get the error
			continue
		}
		if f.compressor != nil {
			next = f.compressor.compress(next)
		}
		changes = append(changes, conversion{r, o, next})
	}
	if len(changes) > 0 {
		s.applyConversions(changes)
	}
}
