package dynamicinformer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
)

// follow runs a generation whenever the type is there to be followed, until ctx ends. It is level-based:
// it compares what is with what runs, and never acts on a single event.
func (i *Informer) follow(ctx context.Context) {
	if i.types == nil {
		i.runGeneration(ctx, sees{}, func() bool { <-ctx.Done(); return false })
		return
	}
	gr := i.gvr.GroupResource()
	for ctx.Err() == nil {
		seen, news := i.types.look(gr)
		i.health.seen(seen)
		if ok, reason := seen.runnable(i.gvr.Version, i.options.Namespaces); !ok {
			i.health.pending(reason)
			await(ctx, news)
			continue
		}
		var reason Reason
		gone := i.runGeneration(ctx, seen, func() bool {
			var gone bool
			gone, reason = i.awaitEnd(ctx, seen.identity())
			return gone
		})
		if gone {
			i.leave(reason)
		}
	}
}

// awaitEnd waits until the type that a generation follows is gone, and says why; false when ctx has ended.
func (i *Informer) awaitEnd(ctx context.Context, was identity) (bool, Reason) {
	for ctx.Err() == nil {
		seen, news := i.types.look(i.gvr.GroupResource())
		i.health.seen(seen)
		if ended, reason := seen.ended(was, i.gvr.Version); ended {
			return true, reason
		}
		await(ctx, news)
		// Whatever has changed, it may be what the requests wait for.
		i.Retry()
	}
	return false, ReasonNone
}

// runGeneration lists and watches until wait returns, and returns what that does. Nothing of the
// generation runs any more then.
func (i *Informer) runGeneration(ctx context.Context, seen sees, wait func() bool) bool {
	ctx, cancel := context.WithCancel(ctx)
	generation := i.health.begin(seen.UID)
	parts := i.parts(seen.exists)
	ran := make(chan struct{})
	// Ended by cancel.
	go func() {
		defer close(ran)
		// It fails only when it runs or has stopped already: after Stop, ctx is about to end.
		_ = i.core.RunParts(ctx, func() { i.health.synced(generation) }, parts...)
	}()
	gone := wait()
	cancel()
	<-ran
	return gone
}

// parts returns what the generation lists and watches: everything at once, or each of several namespaces. known
// says that a source of types says that the type is there.
func (i *Informer) parts(known bool) []informer.Part {
	listWatch := func(namespace string) cache.ListerWatcher {
		return newListWatch(i.source, i.gvr, namespace, i.options, i.health, newPacer(known, i.retry))
	}
	namespaces := i.options.Namespaces
	if !namespaces.several() {
		return []informer.Part{{ListerWatcher: listWatch(namespaces.single())}}
	}
	var all []informer.Part
	for _, name := range namespaces.names {
		all = append(all, informer.Part{Namespace: name, ListerWatcher: listWatch(name)})
	}
	return all
}

// leave ends what handlers and readers see of a type that is gone: every object is queued as deleted, and
// the cache is empty.
func (i *Informer) leave(reason Reason) {
	// It fails only after Stop, when nobody is to be told of deletions.
	_ = i.core.Forget()
	i.health.gone(reason)
}

func await(ctx context.Context, news <-chan struct{}) {
	select {
	case <-news:
	case <-ctx.Done():
	}
}
