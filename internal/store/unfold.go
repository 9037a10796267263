package store

import "github.com/crdcache/crdcache/internal/packed"

// Unfolds reports whether objects that come in blocks are to be given a form of their own, by Unfold: where
// nothing is compressed. Elsewhere they stay as they are, as long as most of their block is in use.
func (s *Store) Unfolds() bool {
	f, ok := s.form.(*Packed)
	return ok && f.press == nil
}

// Unfold gives the objects of some blocks a form of their own, from a place on (zero: the first), and returns
// where the next call goes on; zero: this was the last. One that cannot be read stays as it is, and those are
// told who read it. Readers and handlers see no difference, and wait for nothing.
func (s *Store) Unfold(from uint64) (next uint64) {
	now := s.current.Load()
	for work := 0; work < sweepRows; {
		var l *leaf[row]
		l, from = now.rows.leafFrom(from)
		if l != nil {
			work += len(l.entries)
			for _, r := range l.entries {
				if o := r.object.Load(); o != nil && o.Block() != nil {
					s.unfold(o.Block())
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

// Relieve gives the living objects of a block a form of their own where most of the block has been replaced:
// it would stay in memory for their sake. Where they are no smaller by themselves it leaves them, until half
// of them have gone as well. So a block takes no more than about twice what its living objects do, in it or
// by themselves. It returns false when there is no such block. Readers and handlers see no difference, and
// wait for nothing.
func (s *Store) Relieve() bool {
	s.write.Lock()
	block := s.blocks.takeSparse()
	s.write.Unlock()
	if block == nil {
		return false
	}
	s.unfold(block)
	return true
}

// unfold gives the objects of a block a form of their own.
func (s *Store) unfold(block *packed.Block) {
	f, ok := s.form.(*Packed)
	if !ok { // which keeps no blocks
		return
	}
	now, size := s.current.Load(), 0
	var changes []change
	block.Unfold(func(folded *packed.Object, unfold func() (*packed.Object, error)) bool {
		r := findRow(&now.rows, folded.Key())
		if r == nil || r.object.Load() != folded {
			return true // it has been replaced
		}
		next, err := unfold()
		if err != nil {
			return true
		}
		if f.press != nil {
			next = f.press.compress(next)
		}
		size += next.Size()
		changes = append(changes, change{r, folded, next})
		return true
	})
	if len(changes) > 0 && (s.Unfolds() || size < block.Held()) {
		s.change(changes)
	}
}
