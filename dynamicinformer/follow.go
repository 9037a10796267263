package dynamicinformer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

// follow runs a generation whenever the type is there to be followed, until ctx ends. It is level-based:
// it compares what is with what runs, and never acts on a single event.
func (i *Informer) follow(ctx context.Context) {
	if i.types == nil {
		i.runGeneration(ctx, sees{}, i.gvr.Version, func() { <-ctx.Done() })
		return
	}
	for ctx.Err() == nil {
		seen, news := i.types.look(i.gvr.GroupResource())
		i.health.Seen(seen.exists, seen.Terminating)
		version, reason := seen.runnable(i.gvr.Version, i.options)
		if reason != ReasonNone {
			i.health.Pending(reason)
			await(ctx, news)
			continue
		}
		if reason := i.followVersions(ctx, seen, version); ctx.Err() == nil {
			i.leave(reason)
		}
	}
}

// followVersions runs generations of one type, one for each version that takes over from another, until the type is
// gone, and says why it is, or until ctx ends.
//
// The reflector of the earlier version ends before that of the next begins, because two cannot write to one cache.
// Nothing is missed by that: what is not served any more has nothing left to tell. The cache keeps what the earlier
// one showed until the next has listed. Then the objects are swapped as in a relist: those that are still there
// are delivered as updates.
func (i *Informer) followVersions(ctx context.Context, seen sees, version string) Reason {
	for {
		var next transition
		i.runGeneration(ctx, seen, version, func() { next = i.awaitEnd(ctx, seen.identity(), version) })
		if ctx.Err() != nil || next.version == "" {
			return next.gone
		}
		seen, version = next.seen, next.version
	}
}

// transition is what ends a generation: a type that is gone, or another version that takes over.
type transition struct {
	gone    Reason
	version string // empty when the type is gone
	seen    sees
}

// awaitEnd waits for what ends the generation that follows a version of the type as it was, or for the end of ctx.
func (i *Informer) awaitEnd(ctx context.Context, was identity, version string) transition {
	for ctx.Err() == nil {
		seen, news := i.types.look(i.gvr.GroupResource())
		i.health.Seen(seen.exists, seen.Terminating)
		if reason := seen.ended(was); reason != ReasonNone {
			return transition{gone: reason}
		}
		if !seen.serves(version) {
			next, reason := i.options.Versions.choose(i.gvr.Version, seen.Type)
			if reason != ReasonNone {
				return transition{gone: ReasonVersionNotServed}
			}
			return transition{version: next, seen: seen}
		}
		if was.uid == "" {
			was.uid = seen.UID // it has become known, and is that of the same type
		}
		await(ctx, news)
		// Whatever has changed, it may be what the requests wait for.
		i.Retry()
	}
	return transition{}
}

// runGeneration lists and watches a version until wait returns. Nothing of the generation runs any more then.
func (i *Informer) runGeneration(ctx context.Context, seen sees, version string, wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	generation := i.health.Begin(version, seen.UID)
	ran := make(chan struct{})
	// Ended by cancel.
	go func() {
		defer close(ran)
		i.serve(ctx, generation, seen, version)
	}()
	wait()
	cancel()
	<-ran
}

// parts returns what a generation lists and watches of a version: everything at once, or each of several namespaces.
// known says that a source of types says that the type is there.
func (i *Informer) parts(generation int, version string, known bool) []informer.Part {
	namespaces := i.options.Namespaces
	if !namespaces.several() {
		return []informer.Part{{ListerWatcher: i.listWatch(generation, version, namespaces.single(), requests.NewPacer(known, false, i.retry), nil)}}
	}
	var all []informer.Part
	for _, name := range namespaces.names {
		all = append(all, informer.Part{Namespace: name, ListerWatcher: i.listWatch(generation, version, name, requests.NewPacer(known, false, i.retry), nil)})
	}
	return all
}

// target is a version in a namespace or (empty) all.
func (i *Informer) target(version, namespace string) requests.Target {
	gvr := i.gvr.GroupResource().WithVersion(version)
	return requests.Target{
		GVR: gvr, Namespace: namespace, Form: i.form,
		Tweak: i.options.tweak(gvr), Keep: i.options.Namespaces.filter(),
	}
}

// listWatch is what a reflector lists and watches a version through, in a namespace or (empty) all. forbidden is as
// for requests.Server.ListWatch.
func (i *Informer) listWatch(generation int, version, namespace string, p *requests.Pacer, forbidden func(error)) cache.ListerWatcher {
	return i.source.ListWatch(i.target(version, namespace), i.health.Reporter(generation, namespace), p, forbidden)
}

// leave ends what handlers and readers see of a type that is gone: every object is queued as deleted, and
// the cache is empty.
func (i *Informer) leave(reason Reason) {
	// It fails only after Stop, when nobody is to be told of deletions.
	_ = i.core.Forget()
	i.health.Gone(reason)
}

func await(ctx context.Context, news <-chan struct{}) {
	select {
	case <-news:
	case <-ctx.Done():
	}
}
