package informer

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/store"
)

// RunPartitions works like RunPartition for several partitions. next returns the next set of partitions, each
// of another namespace or selection, and may block until there is one. It is called again when that set runs
// and the partitions outside it have ended. It must return false when its context ends. It can return false
// earlier to end the incarnation.
//
// A partition with the namespace and selection of a running one is the same and continues. Objects outside
// the namespaces of the set are deleted; objects in these namespaces that no partition selects leave the
// shard. Without partitions no object is selected, and no requests are sent.
//
// The informer has synced, and listed is called, when all partitions of the first set that are still in the
// set have listed. Partitions that are added later affect neither of them.
//
// A relist of one of several partitions replaces only its own objects. Readers see it object by object. The
// streams of several namespaces are not merged for one reflector. A reflector has one resource version, and
// would resume all namespaces from the version that any of them has reached. It would lose events, and an
// expired or forbidden namespace would end the watches of all.
func (i *Informer) RunPartitions(ctx context.Context, listed func(),
	next func(context.Context) ([]Partition, bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := i.beginIncarnation(ctx, cancel) // with one pending list: that of the first set
	if err != nil {
		return err
	}
	defer i.endIncarnation(g)
	g.onAllListed = listed
	s := &partitionSet{incarnation: g, running: map[partitionKey]*partition{}}
	defer s.workers.Wait()
	defer cancel()
	for {
		partitions, ok := next(ctx)
		if !ok {
			return nil
		}
		if slices.ContainsFunc(partitions, func(p Partition) bool { return p.ListerWatcher == nil }) {
			return errNoListerWatcher
		}
		if err := s.run(ctx, partitions); err != nil {
			return err
		}
	}
}

// partitionSet has the running partitions of an incarnation.
type partitionSet struct {
	*incarnation
	running map[partitionKey]*partition
	started bool // the first set has been started
	workers sync.WaitGroup
}

type partitionKey struct {
	namespace string
	selection Selection
}

func (p Partition) key() partitionKey { return partitionKey{p.Namespace, p.Selection} }

// run ends the running partitions that are not among partitions, and starts the ones that do not run.
func (s *partitionSet) run(ctx context.Context, partitions []Partition) error {
	added := map[partitionKey]*partition{}
	keep := map[partitionKey]bool{}
	for _, p := range partitions {
		key := p.key()
		keep[key] = true
		if s.running[key] == nil {
			added[key] = s.partition(&p)
		}
	}
	var removed []*partition
	for key, r := range s.running {
		if !keep[key] {
			r.stopReflector()
			<-r.reflectorDone // otherwise it could store objects after their removal
			removed = append(removed, r)
			delete(s.running, key)
		}
	}
	first := !s.started
	if err := s.commitSet(partitions, added, removed); err != nil {
		return err
	}
	s.reportRestoration()
	s.callOnAllListed()
	if first {
		s.restore(ctx, slices.Collect(maps.Values(added))...)
	}
	for _, p := range partitions {
		if r := added[p.key()]; r != nil {
			s.start(ctx, r)
			s.running[p.key()] = r
			delete(added, p.key()) // it may be in the set twice
		}
	}
	return nil
}

func (s *partitionSet) start(ctx context.Context, p *partition) {
	ctx, p.stopReflector = context.WithCancel(ctx)
	p.reflectorDone = make(chan struct{})
	// Ended by run, or with the incarnation.
	s.workers.Go(func() {
		defer close(p.reflectorDone)
		s.informer.reflect(ctx, p)
	})
}

// commitSet makes partitions the current set: it counts the pending lists and removes the objects that leave.
func (s *partitionSet) commitSet(partitions []Partition, added map[partitionKey]*partition,
	removed []*partition) error {
	i := s.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != s.incarnation {
		return ErrIncarnationOver
	}
	i.mu.partitions = slices.AppendSeq(slices.Collect(maps.Values(s.running)), maps.Values(added))
	defer i.streamsChangedLocked()
	for _, r := range added {
		if s.pendingLists == 0 {
			r.hasListed = true // the informer has synced without it
		} else if !r.hasListed {
			s.pendingLists++
		}
	}
	for _, r := range removed {
		if !r.hasListed {
			s.pendingLists--
		}
		removed := i.removeLocked(r.prefix(), func(string) bool { return true })
		i.notifyListLocked(r, delivery.List{Changes: delivery.ChangeSlice(removed)})
	}
	var changes []store.Change
	if !s.started {
		changes = i.removeOutsideLocked(partitions)
		s.started = true
		s.pendingLists--
	}
	s.recordListLocked(nil, delivery.List{Changes: delivery.ChangeSlice(changes)}, false)
	for _, r := range removed { // last, because handlers never received the unconfirmed objects
		r.confirmLocked()
	}
	return nil
}

// removeOutsideLocked removes the objects that belong to none of the partitions. Objects in the namespace of
// a partition leave the shard. The other objects count as deleted, and are returned.
func (i *Informer) removeOutsideLocked(partitions []Partition) []store.Change {
	byPrefix := map[string][]Partition{}
	for _, p := range partitions {
		byPrefix[p.prefix()] = append(byPrefix[p.prefix()], p)
	}
	var deleted []store.Change
	var leaving []delivery.Notification
	for key, item := range i.store.Snapshot().All {
		within := byPrefix[""]
		if slash := strings.IndexByte(key, '/'); slash >= 0 {
			within = append(slices.Clip(within), byPrefix[key[:slash+1]]...)
		}
		selects := func(p Partition) bool { return p.selects(item) }
		switch {
		case slices.ContainsFunc(within, selects):
			continue
		case slices.ContainsFunc(within, Partition.isShard):
			leaving = append(leaving, delivery.LeftShard(item))
		default:
			deleted = append(deleted, store.Change{Key: key, Old: item})
		}
		i.store.Remove(key, "")
	}
	i.notifyLocked(nil, leaving...)
	i.mu.log.reset(i.store.Snapshot().ResourceVersion())
	return deleted
}
