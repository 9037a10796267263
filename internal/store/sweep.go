package store

import "github.com/crdcache/crdcache/internal/packed"

// Sweep is what a look at a part of an adaptive store does with the objects that are not in use.
type Sweep struct {
	// Ages begins another period for each object: see packed.Object.Age.
	Ages bool
	// Compresses says which objects are compressed, of those that are not yet and that are the smaller for
	// it.
	Compresses func(packed.Use) bool
	// Decompresses has compressed objects that have come into use decompressed.
	Decompresses bool
}

// The sweeps that there are.
var (
	// Periodic compresses what has not been read for a whole period, or for packed.MaxAge of them if it had
	// been in use, and decompresses what has been read in two.
	Periodic = Sweep{Ages: true, Decompresses: true, Compresses: func(use packed.Use) bool {
		return !use.Read && !use.Used && use.Age >= restPeriods
	}}
	// Frugal is Periodic where memory is short: nothing is decompressed.
	Frugal = Sweep{Ages: true, Compresses: Periodic.Compresses}
	// BehindFill compresses at once what is not known to be in use.
	BehindFill = Sweep{Compresses: func(use packed.Use) bool { return !use.Used }}
	// Unread compresses what was not read in this period, in use or not.
	Unread = Sweep{Compresses: func(use packed.Use) bool { return !use.Read }}
	// Everything compresses what is in use as well.
	Everything = Sweep{Compresses: func(packed.Use) bool { return true }}
)

// restPeriods is how many periods an object that is not in use stays as it is: two begin with it, so that at
// least one is a whole one.
const restPeriods = 2

// What one call of Store.Sweep looks at and works on at most, which keeps a processor busy for less than a
// millisecond.
const (
	sweepRows  = 2048
	sweepBytes = 64 << 10
)

// Swept is what a call of Store.Sweep came to.
type Swept struct {
	// Next is where the next call goes on; zero: this was the last.
	Next uint64
	// Saved is by how much the store has shrunk.
	Saved int64
	// Worked says that objects were compressed or decompressed, or tried to be.
	Worked bool
}

// Adaptive returns the form of a store whose objects are compressed in the background, or nil.
func (s *Store) Adaptive() *Packed {
	if f, ok := s.form.(*Packed); ok && f.adaptive {
		return f
	}
	return nil
}

// Compressible is how many bytes of objects could be compressed now: none where there are too few objects to
// learn from.
func (m Measure) Compressible() int64 {
	if m.Objects < samplesToTrain && m.PackedBytes < bytesToTrain {
		return 0
	}
	return m.PackedBytes
}

// SetEager sets whether objects are compressed when they arrive.
func (f *Packed) SetEager(eager bool) { f.eager.Store(eager) }

// Sweep looks at some objects from a place on (zero: the first), and puts those in their place that are to be
// in another form. Readers and handlers see no difference. It is called by one goroutine at a time, for
// stores that are adaptive. Neither readers nor writers wait for it while it compresses; writers do while
// what it has compressed is put in place.
func (s *Store) Sweep(from uint64, how Sweep) Swept {
	f, now := s.Adaptive(), s.current.Load()
	var changes []change
	result := Swept{Next: from}
	for rows, work := 0, 0; rows < sweepRows && work < sweepBytes; {
		l, next := now.rows.leafFrom(result.Next)
		if l != nil {
			for _, r := range l.entries {
				c, bytes := f.sweep(r, how)
				work += bytes
				if c.next != nil {
					changes = append(changes, c)
				}
			}
			rows += len(l.entries)
		}
		result.Worked = work > 0
		if result.Next = next; next == 0 {
			break
		}
	}
	if len(changes) > 0 {
		result.Saved = s.change(changes)
	}
	return result
}

// change is an object in another form.
type change struct {
	row       *row
	old, next *packed.Object
}

// sweep returns the object of a row in another form, if it should be, and how many bytes that took to read.
func (f *Packed) sweep(r *row, how Sweep) (change, int) {
	o := r.object.Load()
	if o == nil {
		return change{}, 0
	}
	var use packed.Use
	if how.Ages {
		use = o.Age()
	} else {
		use = o.Use()
	}
	if o.Compressed() {
		if !how.Decompresses || !use.Again {
			return change{}, 0
		}
		next, err := o.Decompress()
		if err != nil { // which those are told who read it
			return change{}, o.Len()
		}
		next.SetUsed()
		return change{r, o, next}, next.Len()
	}
	if use.Stays || !how.Compresses(use) {
		return change{}, 0
	}
	return f.compressed(r, o)
}

func (f *Packed) compressed(r *row, o *packed.Object) (change, int) {
	next := f.press.compress(o)
	if next == o {
		if f.press.trained() {
			o.SetStays()
		}
		return change{}, o.Len()
	}
	return change{r, o, next}, o.Len()
}

// change puts objects in another form in their place, where the rows are still there, and returns what that
// saves. Nobody is told: what the objects show is the same, and so are the indexes.
func (s *Store) change(changes []change) (saved int64) {
	s.write.Lock()
	defer s.write.Unlock()
	now := s.current.Load()
	next := *now
	for _, c := range changes {
		if findRow(&now.rows, c.row.key) == c.row && c.row.object.CompareAndSwap(c.old, c.next) {
			s.blocks.count(&next.sizes, c.old, -1)
			s.blocks.count(&next.sizes, c.next, 1)
		}
	}
	s.changes++
	s.current.Store(&next)
	return now.sizes.packed - next.sizes.packed
}
