package follow

import (
	"context"
	"sync"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

// serve lists and watches a generation until ctx ends. It ignores errors of the cache, which only occur after
// a stop.
func (f *Follower) serve(ctx context.Context, g *generation) {
	listed := func() { f.Health.Synced(g.number) }
	switch {
	case f.Nothing:
		f.serveNothing(ctx, listed)
	case f.Namespaces.fallsBack(g.known):
		f.servePermitted(ctx, g, listed)
	default:
		f.servePart(ctx, g, listed)
	}
}

// serveNothing fills the cache with no objects.
func (f *Follower) serveNothing(ctx context.Context, listed func()) {
	if f.Shard != nil {
		f.Shard.followNothing()
		defer f.Shard.forget()
	}
	f.Health.SetPartitions(nil, "", requests.ReasonNone, nil)
	_ = f.Cache.RunEmpty(ctx, listed)
}

// servePermitted lists and watches all namespaces at once while that is permitted, and otherwise one by one.
func (f *Follower) servePermitted(ctx context.Context, g *generation, listed func()) {
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

// servePart lists and watches a set of namespaces that needs no fallback.
func (f *Follower) servePart(ctx context.Context, g *generation, listed func()) {
	if f.Shard == nil {
		_ = f.Cache.RunPartitions(ctx, listed, f.parts(g)...)
		return
	}
	f.serveRanges(ctx, &plan{Follower: f, generation: g}, listed)
}

// serveRanges lists and watches the changing ranges of a shard until ctx ends.
func (f *Follower) serveRanges(ctx context.Context, p *plan, listed func()) {
	defer f.Shard.forget()
	_ = f.Cache.RunChangingPartitions(ctx, listed, func(ctx context.Context) ([]informer.Partition, bool) {
		for ctx.Err() == nil {
			changed := p.update(f.Namespaces.requested())
			f.Health.SetPartitions(p.names(), "", requests.ReasonNone, nil)
			if changed {
				return p.set(), true
			}
			select {
			case <-f.Shard.changes():
			case <-ctx.Done():
			}
		}
		return nil, false
	})
}

// parts returns the unchanging parts of a generation.
func (f *Follower) parts(g *generation) []informer.Partition {
	var parts []informer.Partition
	for _, name := range f.Namespaces.requested() {
		parts = append(parts, f.part(f.describe(g, name), nil))
	}
	if len(parts) == 1 {
		parts[0].State = f.past(g, parts[0].Namespace)
		parts[0].Namespace = "" // it is the only part
		return parts
	}
	past := f.pastOfEach(g)
	for k := range parts {
		parts[k].State = past
	}
	return parts
}

// past returns the persisted state of a single part.
func (f *Follower) past(g *generation, namespace string) informer.PersistedState {
	return f.pastOf(g, f.describe(g, namespace))
}

// pastOfEach returns the persisted state of namespaces that are read one by one.
func (f *Follower) pastOfEach(g *generation) informer.PersistedState {
	all := f.describe(g, "")
	all.Several = true
	return f.pastOf(g, all)
}

func (f *Follower) pastOf(g *generation, p Part) informer.PersistedState {
	if f.Past == nil {
		return nil
	}
	return f.Past(p, g.known.UID)
}

// describe describes the part of a generation in a namespace.
func (f *Follower) describe(g *generation, namespace string) Part {
	return Part{Generation: g.number, Version: g.version, Namespace: namespace, Name: namespace,
		Known: g.known.exists, Custom: g.known.UID != ""}
}

// part returns a part for the cache to run.
func (f *Follower) part(p Part, forbidden func(error)) informer.Partition {
	part := informer.Partition{Namespace: p.Namespace, ListerWatcher: f.Requests.ListWatch(p, forbidden)}
	if p.Selection != nil {
		part.Selection, part.OnListed = p.Selection,
			func(ordered bool) { f.Shard.listed(p.Selection, ordered) }
	}
	return part
}

// serveAll lists and watches all namespaces at once until ctx ends, or until that is forbidden. Then it
// returns the server's error.
func (f *Follower) serveAll(ctx context.Context, g *generation, listed func()) (refusal error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	forbidden := func(err error) {
		once.Do(func() { refusal = err }) // read after the reflectors have ended
		cancel()
	}
	if f.Shard != nil {
		f.serveRanges(ctx, &plan{Follower: f, generation: g, forbidden: forbidden}, listed)
		return refusal
	}
	all := f.part(f.describe(g, ""), forbidden)
	f.Health.SetPartitions([]string{""}, "", requests.ReasonNone, nil)
	all.State = f.past(g, "")
	_ = f.Cache.RunPartitions(ctx, listed, all)
	return refusal
}

// serveEach lists and watches the changing namespaces of the set one by one, until ctx ends or all may be
// listed at once. The cache keeps its content.
func (f *Follower) serveEach(ctx context.Context, g *generation, listed func(), refusal error) {
	ctx, cancel := context.WithCancel(ctx)
	allowed := make(chan struct{})
	probeEnded := make(chan struct{})
	// ended by cancel
	go func() {
		defer close(probeEnded)
		if f.Requests.AwaitPermission(ctx, f.describe(g, ""), refusal) {
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
	each := &eachNamespace{
		plan: &plan{Follower: f, generation: g,
			past: f.pastOfEach(g)}, all: namespaces, allowed: allowed, refusal: refusal,
		news: make(chan struct{}, 1),
	}
	defer namespaces.Notify(each.notify)()
	if f.Shard != nil {
		defer f.Shard.forget()
	}
	_ = f.Cache.RunChangingPartitions(ctx, listed, each.next)
}
