package store

import "github.com/crdcache/crdcache/internal/packed"

// ShouldExtractBlocks reports whether the caller should copy objects out of their blocks with ExtractBlocks.
// It is true if the store does not compress objects. Other stores leave objects in a block while most of the
// block is in use.
func (s *Store) ShouldExtractBlocks() bool {
	f, ok := s.format.(*Packed)
	return ok && f.compressor == nil
}

// ExtractBlocks copies objects out of their blocks, starting at position from; zero is the first position. It
// returns after a bounded number of objects, with the position for the next call, or zero after the last
// block. An object that cannot be read remains, and readers get the error. Readers and handlers see no
// difference and do not wait.
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

// CompactBlocks copies the remaining objects out of one block, most of whose objects have been replaced, so
// that the block can be freed. If the copies need more memory than the block, it discards the copies, and
// tries again when half of the remaining objects have been replaced. A block thus takes at most about twice
// the memory of its remaining objects. It returns false if there is no such block. Readers and handlers see
// no difference and do not wait.
func (s *Store) CompactBlocks() bool {
	s.write.Lock()
	block := s.blocks.takeSparse()
	s.write.Unlock()
	if block == nil {
		return false
	}
	s.extract(block)
	return true
}

// extract copies the objects out of a block.
func (s *Store) extract(block *packed.Block) {
	f, ok := s.format.(*Packed)
	if !ok { // other formats store no blocks
		return
	}
	current, size := s.current.Load(), 0
	var changes []conversion
	block.Objects(func(o *packed.Object, extract func() (*packed.Object, error)) bool {
		r := current.rows.find(o.Key())
		if r == nil || r.packed() != o {
			return true // it has been replaced
		}
		next, err := extract()
		if err != nil {
			return true
		}
		if f.compressor != nil {
			next = f.compressor.compress(next)
		}
		size += next.Size()
		changes = append(changes, conversion{r, o, next})
		return true
	})
	if len(changes) > 0 && (s.ShouldExtractBlocks() || size < block.Size()) {
		s.applyConversions(changes)
	}
}
