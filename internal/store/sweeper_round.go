package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	// sweepPeriod is how often everything is looked at, and restShare how many times as long as that takes
	// nothing is, in stores so large that it takes long.
	sweepPeriod = 10 * time.Second
	restShare   = 4
	// check is how often the stores are compared with the budget.
	check = time.Second
	// calm and busy are the pauses between slices: of a sweep that nobody waits for, and of one that gives
	// memory back.
	calm = 20 * time.Millisecond
	busy = time.Millisecond
	// worthwhile is from how many bytes on the objects of a type are compressed where memory is not short:
	// the compressor's dictionary and tables take some hundred KB.
	worthwhile = 1 << 20
)

// round is what the goroutine of a Sweeper does. Its fields are the goroutine's own.
type round struct {
	sweeper *Sweeper
	run     *run
	// checks is nil where there is no budget.
	checks <-chan time.Time
	// frugal is set while the stores come to about the budget or more.
	frugal bool
	// inVain is when a sweep has failed to bring the stores below the budget.
	inVain time.Time
}

// loop sweeps until ctx ends.
func (r *round) loop(ctx context.Context) {
	if r.sweeper.budget > 0 {
		ticker := time.NewTicker(check)
		defer ticker.Stop()
		r.checks = ticker.C
	}
	timer := time.NewTimer(sweepPeriod)
	defer timer.Stop()
	for r.await(ctx, timer) {
		started := time.Now()
		r.everything(ctx)
		timer.Reset(max(sweepPeriod, restShare*time.Since(started)))
	}
}

// await waits for a timer, and does what cannot wait meanwhile. It returns false when ctx has ended.
func (r *round) await(ctx context.Context, timer *time.Timer) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-r.run.wake:
			r.behindFills(ctx)
		case wanted := <-r.run.wanted:
			r.compress(ctx, wanted.store)
			close(wanted.done)
		case <-r.checks:
			r.keepBudget(ctx)
		case <-timer.C:
			return ctx.Err() == nil
		}
	}
}

// everything looks at all objects and begins another period for them.
func (r *round) everything(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	var used int64
	if r.sweeper.budget > 0 {
		used, _ = r.measure()
	}
	for _, s := range r.sweeper.members() {
		m := s.Measure()
		if s.Adaptive() == nil || m.Compressed == 0 && m.PackedBytes < worthwhile {
			continue
		}
		for next, more := uint64(0), true; more; more = next != 0 {
			if !r.await(ctx, pause) {
				return
			}
			how := Periodic
			if r.frugal || r.tight(used) {
				how = Frugal
			}
			swept := s.Sweep(next, how)
			next, used = swept.Next, used-swept.Saved
			pause.Reset(calm)
		}
	}
}

// behindFills compresses what has just been listed: as a rule, hardly any of it will be read soon.
func (r *round) behindFills(ctx context.Context) {
	for _, s := range r.sweeper.takeFilled() {
		if m := s.Measure(); m.PackedBytes < worthwhile && m.Compressed == 0 {
			continue
		}
		r.whole(ctx, s, BehindFill, func(int64) bool { return true })
	}
}

// compress compresses what is not known to be in use. It begins twice, because the first objects of a store
// that is compressed for the first time are those that the compressor learns from.
func (r *round) compress(ctx context.Context, s *Store) {
	for range 2 {
		if s.Measure().Compressible() > 0 {
			r.whole(ctx, s, BehindFill, func(int64) bool { return true })
		}
	}
}

// whole sweeps a store at once, until more returns false for the bytes that were saved last.
func (r *round) whole(ctx context.Context, s *Store, how Sweep, more func(saved int64) bool) {
	for next := uint64(0); ; {
		swept := s.Sweep(next, how)
		if next = swept.Next; !more(swept.Saved) || next == 0 {
			return
		}
		pause(ctx, busy)
		if ctx.Err() != nil {
			return
		}
	}
}

// keepBudget compresses until the stores come to less than the budget: first what has not been read lately,
// then also what has. While they come to about as much, what arrives is compressed at once.
func (r *round) keepBudget(ctx context.Context) {
	used, stores := r.measure()
	budget := r.sweeper.budget
	r.frugal = used > budget/10*9 || r.frugal && r.tight(used)
	for _, s := range stores {
		s.Adaptive().SetEager(r.frugal)
	}
	if used <= budget || time.Since(r.inVain) < sweepPeriod {
		return
	}
	goal := budget / 100 * 95
	for _, how := range []Sweep{Unread, Everything} {
		for _, s := range stores {
			r.whole(ctx, s, how, func(saved int64) bool {
				used -= saved
				return used > goal
			})
			if used <= goal || ctx.Err() != nil {
				return
			}
		}
	}
	if used > budget {
		r.inVain = time.Now()
	}
}

// tight reports whether the stores come to so much that nothing should be decompressed.
func (r *round) tight(used int64) bool { return r.sweeper.budget > 0 && used > r.sweeper.budget/10*8 }

// measure returns what all stores come to, and those of them that can be compressed, most to gain first.
func (r *round) measure() (used int64, adaptive []*Store) {
	gain := map[*Store]int64{}
	for _, s := range r.sweeper.members() {
		m := s.Measure()
		used += m.Bytes()
		if s.Adaptive() != nil {
			adaptive = append(adaptive, s)
			gain[s] = m.Compressible()
		}
	}
	slices.SortFunc(adaptive, func(a, b *Store) int { return cmp.Compare(gain[b], gain[a]) })
	return used, adaptive
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
