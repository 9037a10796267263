package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	// sweepPeriod is the time between sweeps of all objects. After a long sweep, the Sweeper pauses at least
	// pauseFactor times its duration.
	sweepPeriod = 10 * time.Second
	pauseFactor = 4
	// budgetPeriod is the time between checks of the budget.
	budgetPeriod = time.Second
	// backgroundPause and urgentPause separate slices: of a periodic sweep, and of one that reduces memory.
	backgroundPause = 20 * time.Millisecond
	urgentPause     = time.Millisecond
	// minSavedBytes is the minimum size in bytes of a type's objects for compression while memory is not
	// short. A compressor's dictionary and tables need some hundred KB.
	minSavedBytes = 1 << 20
)

// sweepWorker is the state of a Sweeper's goroutine.
type sweepWorker struct {
	sweeper *Sweeper
	run     *sweeperRun
	// budgetChecks is nil without a budget.
	budgetChecks <-chan time.Time
	// isNearBudget is set while the size of the stores is near or above the budget.
	isNearBudget bool
	// lastFailure is the time when a sweep last failed to meet the budget.
	lastFailure time.Time
}

// loop sweeps until ctx ends.
func (r *sweepWorker) loop(ctx context.Context) {
	if r.sweeper.budget > 0 {
		ticker := time.NewTicker(budgetPeriod)
		defer ticker.Stop()
		r.budgetChecks = ticker.C
	}
	timer := time.NewTimer(sweepPeriod)
	defer timer.Stop()
	for r.await(ctx, timer) {
		started := time.Now()
		r.compressEverything(ctx)
		timer.Reset(max(sweepPeriod, pauseFactor*time.Since(started)))
	}
}

// await waits for the timer and serves requests in the meantime. It returns false if ctx has ended.
func (r *sweepWorker) await(ctx context.Context, timer *time.Timer) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-r.run.wake:
			r.compressFilled(ctx)
		case request := <-r.run.requests:
			r.compress(ctx, request.store)
			close(request.done)
		case <-r.budgetChecks:
			r.enforceBudget(ctx)
		case <-timer.C:
			return ctx.Err() == nil
		}
	}
}

// compressEverything sweeps all objects and starts a new period for them.
func (r *sweepWorker) compressEverything(ctx context.Context) {
	nextStep := time.NewTimer(0)
	defer nextStep.Stop()
	var used int64
	if r.sweeper.budget > 0 {
		used, _ = r.measure()
	}
	for s := range r.sweeper.members() {
		stats := s.Stats()
		if s.Adaptive() == nil || !r.savesMemory(s, stats) {
			continue
		}
		for next, more := uint64(0), true; more; more = next != 0 {
			if !r.await(ctx, nextStep) {
				return
			}
			mode := SweepPeriodic
			if r.isNearBudget || r.nearBudget(used) {
				mode = SweepFrugal
			}
			result := s.Sweep(next, mode)
			next, used = result.Next, used-result.Saved
			if result.Worked || next != 0 {
				nextStep.Reset(backgroundPause)
			} else {
				nextStep.Reset(urgentPause) // there can be thousands of small stores
			}
		}
	}
}

// compressFilled compresses lists that just arrived, because few of their objects are usually read soon.
func (r *sweepWorker) compressFilled(ctx context.Context) {
	for _, s := range r.sweeper.takeFilled() {
		if !r.savesMemory(s, s.Stats()) {
			continue
		}
		r.sweepAll(ctx, s, SweepAfterFill, func(int64) bool { return true })
	}
}

// savesMemory reports whether compression saves more memory than a new Compressor needs, or whether a
// shared Compressor exists. Stores with the same Dictionary count together.
func (r *sweepWorker) savesMemory(s *Store, stats Stats) bool {
	total := stats.PackedBytes
	if stats.Compressed > 0 || total >= minSavedBytes {
		return true
	}
	shared := s.Adaptive().compressor
	if shared == nil {
		return false
	}
	if shared.isTrained() {
		return true
	}
	for other := range r.sweeper.members() {
		if f := other.Adaptive(); other != s && f != nil && f.compressor != nil && f.compressor == shared {
			total += other.Stats().PackedBytes
		}
	}
	return total >= minSavedBytes
}

// compress compresses objects that are not known to be in use. It sweeps twice, because the first objects of
// a new store serve to train the compressor.
func (r *sweepWorker) compress(ctx context.Context, s *Store) {
	for range 2 {
		if s.Stats().Compressible() > 0 {
			r.sweepAll(ctx, s, SweepAfterFill, func(int64) bool { return true })
		}
	}
}

// sweepAll sweeps a store with the shortest pauses, until shouldContinue returns false. shouldContinue
// receives the bytes that a step saved.
func (r *sweepWorker) sweepAll(ctx context.Context, s *Store, mode Sweep,
	shouldContinue func(saved int64) bool) {
	for next := uint64(0); ; {
		result := s.Sweep(next, mode)
		if next = result.Next; !shouldContinue(result.Saved) || next == 0 {
			return
		}
		sleep(ctx, urgentPause)
		if ctx.Err() != nil {
			return
		}
	}
}

// enforceBudget compresses until the stores are below the budget: first the coldest objects, then objects
// that were not read recently, then all, and in each step those of unreachable clusters first. Near the
// budget, arriving objects are compressed immediately.
func (r *sweepWorker) enforceBudget(ctx context.Context) {
	used, stores := r.measure()
	budget := r.sweeper.budget
	r.isNearBudget = used > budget/10*9 || r.isNearBudget && r.nearBudget(used)
	for _, s := range stores {
		s.Adaptive().SetCompressOnArrival(r.isNearBudget)
	}
	if used <= budget || time.Since(r.lastFailure) < sweepPeriod {
		return
	}
	goal := budget / 100 * 95
	for _, mode := range []Sweep{SweepCold, SweepUnread, SweepAll} {
		for _, s := range stores {
			r.sweepAll(ctx, s, mode, func(saved int64) bool {
				used -= saved
				return used > goal
			})
			if used <= goal || ctx.Err() != nil {
				return
			}
		}
	}
	if used > budget {
		r.lastFailure = time.Now()
	}
}

// nearBudget reports whether the size is too close to the budget to decompress objects.
func (r *sweepWorker) nearBudget(used int64) bool {
	return r.sweeper.budget > 0 && used > r.sweeper.budget/10*8
}

// measure returns the total size of all stores, and the adaptive stores: those of unreachable clusters first,
// each sorted by decreasing compressible size.
func (r *sweepWorker) measure() (used int64, adaptive []*Store) {
	compressibleBytes, unreachableRank := map[*Store]int64{}, map[*Store]int{}
	for s, isUnreachable := range r.sweeper.members() {
		stats := s.Stats()
		used += stats.Bytes()
		if s.Adaptive() == nil {
			continue
		}
		adaptive = append(adaptive, s)
		compressibleBytes[s] = stats.Compressible()
		if isUnreachable() {
			unreachableRank[s] = 1
		}
	}
	slices.SortFunc(adaptive, func(a, b *Store) int {
		return cmp.Or(cmp.Compare(unreachableRank[b], unreachableRank[a]),
			cmp.Compare(compressibleBytes[b], compressibleBytes[a]))
	})
	return used, adaptive
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
