package follow

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
)

// serve lists and watches an incarnation until ctx ends. It ignores errors of the cache, which only occur
// after a stop.
func (f *Follower) serve(ctx context.Context, g *incarnation) {
	listed := func() { f.Health.Synced(g.number) }
	switch {
	case f.SelectsNothing:
		f.serveNothing(ctx, listed)
	case f.Namespaces.canFollowSeparately(g.state):
		f.servePermitted(ctx, g, listed)
	default:
		f.serveNamespaces(ctx, g, listed)
	}
}

// serveNothing fills the cache with no objects.
func (f *Follower) serveNothing(ctx context.Context, listed func()) {
	if f.Shard != nil {
		f.Shard.follow(nil)
		defer f.Shard.stop()
	}
	f.Health.SetPartitions(nil, "", status.ReasonNone, nil)
	_ = f.Cache.RunPartitions(ctx, listed)
}

// servePermitted lists and watches all namespaces together while that is permitted, and otherwise one by one.
func (f *Follower) servePermitted(ctx context.Context, g *incarnation, listed func()) {
	for {
		refusal := f.serveAll(ctx, g, listed)
		if ctx.Err() != nil || refusal == nil {
			return
		}
		f.serveEach(ctx, g, listed, refusal)
		if ctx.Err() != nil {
			return
		}
	}
}

// serveNamespaces lists and watches a set of namespaces that needs no fallback.
func (f *Follower) serveNamespaces(ctx context.Context, g *incarnation, listed func()) {
	if f.Shard == nil {
		_ = f.Cache.RunPartitions(ctx, listed, f.fixedPartitions(g)...)
		return
	}
	f.serveRanges(ctx, &plan{Follower: f, incarnation: g}, listed)
}

// serveRanges lists and watches the changing ranges of a shard until ctx ends.
func (f *Follower) serveRanges(ctx context.Context, p *plan, listed func()) {
	defer f.Shard.stop()
	_ = f.Cache.RunChangingPartitions(ctx, listed, func(ctx context.Context) ([]informer.Partition, bool) {
		for ctx.Err() == nil {
			changed := p.update(f.Namespaces.requested())
			f.Health.SetPartitions(p.names(), "", status.ReasonNone, nil)
			if changed {
				return p.partitions(), true
			}
			select {
			case <-f.Shard.changes():
			case <-ctx.Done():
			}
		}
		return nil, false
	})
}

func (f *Follower) fixedPartitions(g *incarnation) []informer.Partition {
	var partitions []informer.Partition
	for _, name := range f.Namespaces.requested() {
		partitions = append(partitions, f.newPartition(f.partitionSpec(g, name), nil))
	}
	if len(partitions) == 1 {
		partitions[0].State = f.restoredState(g, partitions[0].Namespace)
		partitions[0].Namespace = "" // it is the only partition
		return partitions
	}
	restored := f.restoredStateOfEach(g)
	for k := range partitions {
		partitions[k].State = restored
	}
	return partitions
}

// restoredState returns the persisted state of a single partition.
func (f *Follower) restoredState(g *incarnation, namespace string) informer.PersistedState {
	return f.restoredStateOf(g, f.partitionSpec(g, namespace))
}

func (f *Follower) restoredStateOfEach(g *incarnation) informer.PersistedState {
	all := f.partitionSpec(g, "")
	all.PerNamespace = true
	return f.restoredStateOf(g, all)
}

func (f *Follower) restoredStateOf(g *incarnation, p PartitionSpec) informer.PersistedState {
	if f.RestoredState == nil {
		return nil
	}
	return f.RestoredState(p, g.state.UID)
}

func (f *Follower) partitionSpec(g *incarnation, namespace string) PartitionSpec {
	return PartitionSpec{Incarnation: g.number, Version: g.version, Namespace: namespace,
		TypeKnown: g.state.exists, Custom: g.state.UID != ""}
}

func (f *Follower) newPartition(p PartitionSpec, forbidden func(error)) informer.Partition {
	partition := informer.Partition{Namespace: p.Namespace, ListerWatcher: f.Requests.ListWatch(p, forbidden)}
	if p.Selection != nil {
		partition.Selection, partition.OnListed = p.Selection, f.Shard.notify
	}
	return partition
}

// serveAll lists and watches all namespaces with one request each until ctx ends, or until that is forbidden.
// Then it returns the server's error.
func (f *Follower) serveAll(ctx context.Context, g *incarnation, listed func()) (refusal error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	forbidden := func(err error) {
		once.Do(func() { refusal = err }) // read after the reflectors have ended
		cancel()
	}
	if f.Shard != nil {
		f.serveRanges(ctx, &plan{Follower: f, incarnation: g, forbidden: forbidden}, listed)
		return refusal
	}
	all := f.newPartition(f.partitionSpec(g, ""), forbidden)
	f.Health.SetPartitions([]string{""}, "", status.ReasonNone, nil)
	all.State = f.restoredState(g, "")
	_ = f.Cache.RunPartitions(ctx, listed, all)
	return refusal
}

// serveEach lists and watches the changing namespaces of the set one by one, until ctx ends or listing all
// namespaces is allowed. The cache retains its content.
func (f *Follower) serveEach(ctx context.Context, g *incarnation, listed func(), refusal error) {
	ctx, cancel := context.WithCancel(ctx)
	allowed := make(chan struct{})
	probeEnded := make(chan struct{})
	// ended by cancel
	go func() {
		defer close(probeEnded)
		if f.Requests.AwaitPermission(ctx, f.partitionSpec(g, ""), refusal) {
			close(allowed)
		}
	}()
	defer func() {
		cancel()
		<-probeEnded
	}()
	namespaces, err := f.AllNamespaces()
	if err != nil { // after the shutdown of the factory
		<-ctx.Done()
		return
	}
	defer namespaces.Release()
	each := &namespaceSelector{
		plan: &plan{Follower: f, incarnation: g,
			restoredState: f.restoredStateOfEach(g)}, namespaces: namespaces, listAllowed: allowed,
		refusal: refusal,
		changed: make(chan struct{}, 1),
	}
	defer namespaces.Notify(func() { signal(each.changed) })()
	if f.Shard != nil {
		defer f.Shard.stop()
	}
	_ = f.Cache.RunChangingPartitions(ctx, listed, each.next)
}
