package store

import "github.com/crdcache/crdcache/internal/packed"

// Unfolds reports whether objects that come in blocks are to be given a form of their own, by Unfold: where nothing is
// compressed. Elsewhere they stay as they are.
func (s *Store) Unfolds() bool {
	f, ok := s.form.(*Packed)
	return ok && f.press == nil
}

// Unfold gives the objects of some blocks a form of their own, from a place on (zero: the first), and returns where the next
// call goes on; zero: this was the last. One that cannot be read stays as it is, and those are told who read it. Readers and
// handlers see no difference, and wait for nothing.
func (s *Store) Unfold(from uint64) (next uint64) {
	now := s.current.Load()
	for work := 0; work < sweepRows; {
		var l *leaf[row]
		l, from = now.rows.leafFrom(from)
		if l != nil {
			work += len(l.entries)
			for _, r := range l.entries {
				if o := r.object.Load(); o != nil && o.InBlock() {
					work += s.unfold(now, o)
				}
			}
		}
		if from == 0 {
			break
		}
	}
	return from
}

// unfold unfolds the block of an object, and returns what work that was, in rows that could have been looked at.
func (s *Store) unfold(now *Snapshot, some *packed.Object) (work int) {
	var changes []change
	some.Unfold(func(folded *packed.Object, unfold func() (*packed.Object, error)) bool {
		r := findRow(&now.rows, folded.Key())
		if r == nil || r.object.Load() != folded {
			return true // it has been replaced
		}
		if next, err := unfold(); err == nil {
			changes = append(changes, change{r, folded, next})
		}
		return true
	})
	if len(changes) > 0 {
		s.change(changes)
	}
	return sweepRows / 8
}
