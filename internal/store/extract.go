package store

import "github.com/crdcache/crdcache/internal/packed"

// ExtractsBlocks reports whether to copy objects out of their blocks with ExtractBlocks. This is the case if
// the store does not compress objects. Other stores leave objects in blocks while most of a block is in use.
func (s *Store) ExtractsBlocks() bool {
	f, ok := s.form.(*Packed)
	return ok && f.compressor == nil
}

// ExtractBlocks copies the objects out of some blocks, starting at position from; zero is the first position.
// It returns the position for the next call, or zero after the last block. An object that cannot be read
// remains, and readers get the error. Readers and handlers see no difference and do not wait.
func (s *Store) ExtractBlocks(from uint64) (next uint64) {
	now := s.current.Load()
	for work := 0; work < sweepRows; {
		var l *leafNode[storedRow]
		l, from = now.rows.leafFrom(from)
		if l != nil {
			work += len(l.entries)
			for _, r := range l.entries {
				if o := r.object.Load(); o != nil && o.Block() != nil {
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

// CompactBlocks copies the remaining objects out of a block if most of its objects have been replaced, so
// that the block can be freed. If the copies would need more memory, it leaves them until half of them have
// been replaced too. A block thus needs at most about twice the memory of its objects in the content. It
// returns false if there is no such block. Readers and handlers see no difference and do not wait.
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
	f, ok := s.form.(*Packed)
	if !ok { // other forms store no blocks
		return
	}
	now, size := s.current.Load(), 0
	var changes []formChange
	block.Objects(func(o *packed.Object, extract func() (*packed.Object, error)) bool {
		r := now.rows.find(o.Key())
		if r == nil || r.object.Load() != o {
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
		changes = append(changes, formChange{r, o, next})
		return true
	})
	if len(changes) > 0 && (s.ExtractsBlocks() || size < block.Size()) {
		s.changeForms(changes)
	}
}
