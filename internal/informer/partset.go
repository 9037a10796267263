package informer

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/crdcache/crdcache/internal/store"
)

// RunChangingParts is RunParts with parts that come and go. next returns the parts, each with a namespace or
// a selection, that run from then on; it is called again as soon as they do and those that are no longer
// among them have ended, and may take its time. It ends the generation by returning false, which it has to
// when its context has ended. Parts are told apart by their namespaces and selections: one that was there
// before goes on as it is, and one that joins others goes on where they are. Objects outside all namespaces
// are removed, and handlers told of deletions; those inside that no part selects depart.
//
// The informer has synced, and listed is called, when each part has listed; parts that come later change
// neither.
func (i *Informer) RunChangingParts(ctx context.Context, listed func(),
	next func(context.Context) ([]Part, bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := i.begin(ctx, cancel, StateFresh, StateIdle) // the first set is what it waits for to be listed
	if err != nil {
		return err
	}
	defer i.end(g)
	g.listed = listed
	i.reflector.Store(nil)
	s := &partSet{generation: g, running: map[partKey]*runningPart{}}
	defer s.workers.Wait()
	defer cancel()
	s.workers.Go(func() { g.resyncs(ctx) }) // ended by cancel
	for {
		parts, ok := next(ctx)
		if !ok {
			return nil
		}
		if err := s.become(ctx, parts); err != nil {
			return err
		}
	}
}

// partSet is the parts of a generation that come and go.
type partSet struct {
	*generation
	running map[partKey]*runningPart
	begun   bool // there has been a set
	workers sync.WaitGroup
}

// partKey tells parts apart.
type partKey struct {
	namespace string
	selection Selection
}

func (p Part) key() partKey { return partKey{p.Namespace, p.Selection} }

// runningPart is a part with the reflector that feeds it.
type runningPart struct {
	*part
	// joins are the selections of the parts that it takes the place of; joined says that another has taken
	// its place.
	joins  []Selection
	joined bool
	cancel context.CancelFunc
	done   chan struct{} // closed when the reflector has ended
}

// become runs these parts and no others.
func (s *partSet) become(ctx context.Context, parts []Part) error {
	added := map[partKey]*runningPart{}
	wanted := map[partKey]bool{}
	for _, p := range parts {
		key := p.key()
		wanted[key] = true
		if s.running[key] == nil {
			added[key] = &runningPart{part: s.generation.part(p), joins: p.Joins, done: make(chan struct{})}
		}
	}
	var gone []*runningPart
	for key, r := range s.running {
		if !wanted[key] {
			r.cancel()
			<-r.done // or it might write what nobody would remove
			gone = append(gone, r)
			delete(s.running, key)
		}
	}
	for _, r := range added {
		r.join(gone)
	}
	first := !s.begun
	if err := s.swap(parts, added, gone); err != nil {
		return err
	}
	s.settle()
	s.announce()
	if first {
		s.recall(ctx, partsOf(added))
	}
	for _, p := range parts {
		if r := added[p.key()]; r != nil {
			s.run(ctx, r)
			s.running[p.key()] = r
			delete(added, p.key()) // should it be there twice
		}
	}
	return nil
}

// join has the part take the place of some of those that have gone.
func (r *runningPart) join(gone []*runningPart) {
	if len(r.joins) == 0 {
		return
	}
	var from []*runningPart
	for _, g := range gone {
		if g.prefix == r.prefix && slices.Contains(r.joins, g.selection) {
			g.joined = true
			from = append(from, g)
		}
	}
	r.progress = joined(from)
	r.at = r.version
	r.hasListed, r.relisting = true, true
}

// run starts the reflector of a part.
func (s *partSet) run(ctx context.Context, r *runningPart) {
	ctx, r.cancel = context.WithCancel(ctx)
	// Ended by become, or with the generation.
	s.workers.Go(func() {
		defer close(r.done)
		s.informer.reflectPart(ctx, r.part)
	})
}

func partsOf(running map[partKey]*runningPart) []*part {
	parts := make([]*part, 0, len(running))
	for _, r := range running {
		parts = append(parts, r.part)
	}
	return parts
}

// swap records that parts come and go: what is to be listed before the informer has synced, and which objects
// leave.
func (s *partSet) swap(wanted []Part, added map[partKey]*runningPart, gone []*runningPart) error {
	i := s.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != s.generation {
		return ErrGenerationOver
	}
	i.mu.wholeOf = nil
	i.mu.parts = append(partsOf(s.running), partsOf(added)...)
	s.partsOfSet = len(s.running) + len(added)
	for _, r := range added {
		if s.unlisted == 0 {
			r.hasListed = true // as far as the generation goes
		} else if !r.hasListed {
			s.unlisted++
		}
	}
	for _, r := range gone {
		if !r.hasListed {
			s.unlisted--
		}
	}
	var changes []store.Change
	for _, r := range gone {
		if !r.joined {
			changes = append(changes, i.removeLocked(r.prefix, r.ownsLocked)...)
		}
	}
	if !s.begun {
		changes = i.removeOutsideLocked(wanted)
		s.begun = true
		s.unlisted--
	}
	s.recordListLocked(changes, false)
	for _, r := range gone { // of which nobody has been told
		r.confirmLocked()
	}
	return nil
}

// removeOutsideLocked removes the objects that are of none of the parts: those that none selects in its
// namespace depart.
func (i *Informer) removeOutsideLocked(parts []Part) []store.Change {
	byPrefix := map[string][]Part{}
	for _, p := range parts {
		byPrefix[p.prefix()] = append(byPrefix[p.prefix()], p)
	}
	var changes []store.Change
	var leaving []notification
	for key, item := range i.store.Snapshot().All {
		within := byPrefix[""]
		if slash := strings.IndexByte(key, '/'); slash >= 0 {
			within = append(slices.Clip(within), byPrefix[key[:slash+1]]...)
		}
		switch {
		case slices.ContainsFunc(within, func(p Part) bool {
			return p.Selection == nil ||
				p.Selection.Has(item)
		}):
			continue
		case len(within) > 0:
			leaving = append(leaving, departed(item))
		default:
			changes = append(changes, store.Change{Key: key, Old: item})
		}
		i.store.Remove(key, "")
	}
	i.tellLocked(leaving...)
	i.mu.log.reset(i.store.Snapshot().ResourceVersion())
	return changes
}

// resyncs looks whether handlers are due for a resync, as reflectors do, until ctx ends: no part can be
// listed, or stays, for sure.
func (g *generation) resyncs(ctx context.Context) {
	if g.check <= 0 {
		return
	}
	ticker := g.informer.clock.NewTicker(g.check)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if g.shouldResync() {
			if err := g.Resync(); err != nil { // the generation is over
				return
			}
		}
	}
}
