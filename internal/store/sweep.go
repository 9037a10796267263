package store

import "github.com/crdcache/crdcache/internal/packed"

// Sweep defines how Store.Sweep treats the objects that it visits.
type Sweep struct {
	// AdvanceAges starts a new period for each object; see packed.Object.StartReadPeriod.
	AdvanceAges bool
	// Compresses reports whether to compress an uncompressed object with this usage.
	Compresses func(packed.Usage) bool
	// Decompresses selects decompression of objects that are in use.
	Decompresses bool
}

// The kinds of sweeps.
var (
	// SweepPeriodic compresses objects that were not read for a full period, or for packed.MaxAge periods if
	// they had been in use. It decompresses objects that were read in this and in an earlier recent one.
	SweepPeriodic = Sweep{AdvanceAges: true, Decompresses: true, Compresses: func(use packed.Usage) bool {
		return !use.Read && !use.InUse && use.Age >= idlePeriods
	}}
	// SweepFrugal is SweepPeriodic without decompression, for when memory is short.
	SweepFrugal = Sweep{AdvanceAges: true, Compresses: SweepPeriodic.Compresses}
	// SweepAfterFill compresses objects that are not known to be in use.
	SweepAfterFill = Sweep{Compresses: func(use packed.Usage) bool { return !use.InUse }}
	// SweepCold compresses like SweepPeriodic, without a new period.
	SweepCold = Sweep{Compresses: SweepPeriodic.Compresses}
	// SweepUnread compresses objects that were not read in this period, even if they are in use.
	SweepUnread = Sweep{Compresses: func(use packed.Usage) bool { return !use.Read }}
	// SweepAll compresses all objects.
	SweepAll = Sweep{Compresses: func(packed.Usage) bool { return true }}
)

// idlePeriods is the number of periods without a read, the first one partial, before a compression.
const idlePeriods = 2

// Limits of one call of Store.Sweep, which takes less than a millisecond of CPU time.
const (
	sweepRows  = 2048
	sweepBytes = 64 << 10
)

// SweepResult is the result of a call of Store.Sweep.
type SweepResult struct {
	// Next is the position for the next call; zero after the last one.
	Next uint64
	// Saved is the decrease of the store's size in bytes.
	Saved int64
	// Worked reports whether objects were read, to compress or decompress them.
	Worked bool
}

// Adaptive returns the Format of a store that compresses objects in the background, or nil.
func (s *Store) Adaptive() *Packed {
	if f, ok := s.format.(*Packed); ok && f.adaptive {
		return f
	}
	return nil
}

// SetCompressOnArrival sets whether objects are compressed on arrival.
func (f *Packed) SetCompressOnArrival(enabled bool) { f.compressOnArrival.Store(enabled) }

// Sweep visits some objects, starting at position from, and compresses or decompresses them according to
// mode. Zero is the first position. Readers and handlers see no difference. Sweep works only on adaptive
// stores and must not be called concurrently. Readers never wait; writers do while objects are stored.
func (s *Store) Sweep(from uint64, mode Sweep) SweepResult {
	f, current := s.Adaptive(), s.current.Load()
	var changes []conversion
	result := SweepResult{Next: from}
	for rows, work := 0, 0; rows < sweepRows && work < sweepBytes; {
		l, next := current.rows.leafFrom(result.Next)
		if l != nil {
			for _, r := range l.entries {
				c, bytes := f.sweep(r, mode)
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
		result.Saved = s.applyConversions(changes)
	}
	return result
}

// conversion replaces an object with a compressed or decompressed copy of it.
type conversion struct {
	row       *storedRow
	old, next *packed.Object
}

// sweep returns the conversion of a row, if any, and the number of bytes read.
func (f *Packed) sweep(r *storedRow, mode Sweep) (conversion, int) {
	o := r.packed()
	if o == nil {
		return conversion{}, 0
	}
	var use packed.Usage
	if mode.AdvanceAges {
		use = o.StartReadPeriod()
	} else {
		use = o.Usage()
	}
	if o.Compressed() {
		if !mode.Decompresses || !use.ReadBefore {
			return conversion{}, 0
		}
		next, err := o.Decompress()
		if err != nil { // readers get the error
			return conversion{}, o.Len()
		}
		next.SetInUse()
		return conversion{r, o, next}, next.Len()
	}
	if use.Incompressible || !mode.Compresses(use) {
		return conversion{}, 0
	}
	return f.compressRow(r, o)
}

func (f *Packed) compressRow(r *storedRow, o *packed.Object) (conversion, int) {
	ready := f.compressor.isReady()
	next := f.compressor.compress(o)
	if next == o {
		if ready && f.compressor.isReady() {
			o.SetIncompressible()
		}
		return conversion{}, o.Len()
	}
	return conversion{r, o, next}, o.Len()
}

// applyConversions stores the converted objects whose rows are still in the content, and returns the saved
// bytes. It sends no events, because the objects and their indexes are unchanged.
func (s *Store) applyConversions(changes []conversion) (saved int64) {
	s.write.Lock()
	defer s.write.Unlock()
	current := s.current.Load()
	next := *current
	for _, c := range changes {
		if current.rows.find(keyOf(c.row)) == c.row && c.row.object.CompareAndSwap(c.old, c.next) {
			next.sizes.countPacked(c.old, -1)
			next.sizes.countPacked(c.next, 1)
		}
	}
	s.conversions++
	s.publish(&next, "")
	return current.sizes.packed - next.sizes.packed
}

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
