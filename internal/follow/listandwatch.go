package follow

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/queue"
)

// listAndWatch runs an incarnation until ctx ends. It ignores errors of the cache: they follow a stop.
func (f *Follower) listAndWatch(ctx context.Context, g *incarnation) {
	listed := func() { f.Health.Synced(g.number) }
	switch {
	case f.SelectsNothing:
		f.watchPlan(ctx, &plan{Follower: f, incarnation: g}, nil, listed)
	case f.Namespaces.canFollowSeparately(g.state):
		f.watchPermitted(ctx, g, listed)
	default:
		f.watchRequested(ctx, g, listed, nil)
	}
}

// watchPermitted lists and watches all namespaces together while that is permitted, and otherwise one by one.
func (f *Follower) watchPermitted(ctx context.Context, g *incarnation, listed func()) {
	for {
		refusal := f.watchAllNamespaces(ctx, g, listed)
		if ctx.Err() != nil || refusal == nil {
			return
		}
		f.watchEachNamespace(ctx, g, listed, refusal)
		if ctx.Err() != nil {
			return
		}
	}
}

// watchRequested lists and watches the requested namespaces until ctx ends. forbidden, if not nil, is called
// when that is forbidden.
func (f *Follower) watchRequested(ctx context.Context, g *incarnation, listed func(), forbidden func(error)) {
	names := f.Namespaces.requested()
	p := &plan{Follower: f, incarnation: g, forbidden: forbidden}
	switch {
	case f.Selections != nil:
	case len(names) > 1:
		p.restoredState = f.restoredStateOfEach(g)
	default:
		f.Health.SetPartitions(names, "", status.ReasonNone, nil)
		_ = f.Cache.RunPartition(ctx, listed, f.onlyPartition(g, names[0], forbidden))
		return
	}
	f.watchPlan(ctx, p, names, listed)
}

// onlyPartition returns the partition of a namespace, or of all if it is empty, if there are no others.
func (f *Follower) onlyPartition(g *incarnation, namespace string, forbidden func(error)) informer.Partition {
	spec := f.partitionSpec(g, namespace)
	only := f.newPartition(spec, forbidden)
	only.State = f.restoredStateOf(g, spec)
	only.Namespace = "" // all objects are of this namespace
	return only
}

// watchPlan lists and watches namespaces, and the changing ranges of a shard, until ctx ends.
func (f *Follower) watchPlan(ctx context.Context, p *plan, namespaces []string, listed func()) {
	defer f.Selections.stop()
	_ = f.Cache.RunPartitions(ctx, listed, func(ctx context.Context) ([]informer.Partition, bool) {
		for ctx.Err() == nil {
			changed := p.update(namespaces)
			f.Health.SetPartitions(p.names(), "", status.ReasonNone, nil)
			if changed {
				return p.partitions(), true
			}
			select {
			case <-f.Selections.changes():
			case <-ctx.Done():
			}
		}
		return nil, false
	})
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
		Kind: g.state.Kind, Namespaced: g.state.Namespaced,
		TypeKnown: g.state.exists, Custom: g.state.UID != "", ListOnly: g.state.polls(g.version)}
}

func (f *Follower) newPartition(p PartitionSpec, forbidden func(error)) informer.Partition {
	partition := informer.Partition{Namespace: p.Namespace, ListerWatcher: f.Requests.ListWatch(p, forbidden)}
	if p.Selection != nil {
		partition.Selection, partition.OnListed = p.Selection, f.Selections.notify
	}
	return partition
}

// watchAllNamespaces lists and watches all namespaces together until ctx ends. It returns the server's error
// if that is forbidden.
func (f *Follower) watchAllNamespaces(ctx context.Context, g *incarnation, listed func()) (refusal error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	f.watchRequested(ctx, g, listed, func(err error) {
		once.Do(func() { refusal = err }) // read after the reflectors have ended
		cancel()
	})
	return refusal
}

// watchEachNamespace lists and watches the changing namespaces of the set one by one, until ctx ends or all
// namespaces may be listed together. The cache retains its content.
func (f *Follower) watchEachNamespace(ctx context.Context, g *incarnation, listed func(), refusal error) {
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
	defer namespaces.OnChange(func() { queue.Wake(each.changed) })()
	defer f.Selections.stop()
	_ = f.Cache.RunPartitions(ctx, listed, each.next)
}

// plan tracks the partitions of an incarnation while namespaces and selections change. One goroutine uses it.
type plan struct {
	*Follower
	incarnation *incarnation
	// forbidden, if not nil, is called when a list is forbidden, which is then not a failure.
	forbidden func(error)
	// running are the partitions by namespace. It is nil before the first update.
	running       map[string]informer.Partition
	restoredState informer.PersistedState // of namespaces that are read one by one; optional
}

// update sets the partitions for these namespaces, and reports whether the set has changed.
func (p *plan) update(namespaces []string) bool {
	selections := map[string]Selection{}
	if p.Selections != nil {
		selections = p.Selections.selectionsFor(namespaces)
		namespaces = slices.Collect(maps.Keys(selections))
	}
	next := make(map[string]informer.Partition, len(namespaces))
	changed := p.running == nil || len(namespaces) != len(p.running)
	for _, name := range namespaces {
		partition, runs := p.running[name]
		if selection := selections[name]; !runs || selection != nil && partition.Selection != selection {
			partition, changed = p.newPlannedPartition(name, selection), true
		}
		next[name] = partition
	}
	p.running = next
	return changed
}

func (p *plan) newPlannedPartition(namespace string, selection Selection) informer.Partition {
	description := p.partitionSpec(p.incarnation, namespace)
	description.Selection = selection
	_, known := p.running[namespace]
	description.NamespaceIsNew = p.running != nil && namespace != "" && !known
	partition := p.newPartition(description, p.forbidden)
	partition.State = p.restoredState
	return partition
}

func (p *plan) names() []string { return slices.Collect(maps.Keys(p.running)) }

func (p *plan) partitions() []informer.Partition { return slices.Collect(maps.Values(p.running)) }
