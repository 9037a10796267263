package dynamicinformer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

// namespacesGVR is the type of namespaces.
var namespacesGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// serve lists and watches a version of the type until ctx ends.
func (i *Informer) serve(ctx context.Context, generation int, seen sees, version string) {
	listed := func() { i.health.Synced(generation) }
	if i.options.matchesNothing() {
		_ = i.core.RunEmpty(ctx, listed) // it fails as RunParts does
		return
	}
	if !i.options.Namespaces.fallsBack(seen) {
		// It fails only when it runs or has stopped already: after Stop, ctx is about to end.
		_ = i.core.RunParts(ctx, listed, i.parts(generation, version, seen.exists)...)
		return
	}
	for {
		refusal := i.serveAll(ctx, generation, listed, version, seen.exists)
		if ctx.Err() != nil || refusal == nil {
			return
		}
		i.serveEach(ctx, generation, listed, version, seen.exists, refusal)
		if ctx.Err() != nil {
			return
		}
	}
}

// serveAll lists and watches all namespaces at once until ctx ends, or until that is forbidden, when it returns what
// the server says.
func (i *Informer) serveAll(ctx context.Context, generation int, listed func(), version string, known bool) (refusal error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.health.Consists([]string{""}, nil, "")
	lw := i.listWatch(generation, version, "", requests.NewPacer(known, false, i.retry), func(err error) {
		refusal = err // read when the reflector has ended
		cancel()
	})
	_ = i.core.RunParts(ctx, listed, informer.Part{ListerWatcher: lw})
	return refusal
}

// serveEach lists and watches the namespaces of the set one by one, as they come and go, until ctx ends or
// everything may be listed at once. The cache keeps what is in it meanwhile.
func (i *Informer) serveEach(ctx context.Context, generation int, listed func(), version string, known bool, refusal error) {
	ctx, cancel := context.WithCancel(ctx)
	allowed := make(chan struct{})
	asked := make(chan struct{})
	// Ended by cancel.
	go func() {
		defer close(asked)
		if i.source.AwaitRight(ctx, i.target(version, ""), requests.NewPacer(known, false, i.retry), refusal) {
			close(allowed)
		}
	}()
	defer func() {
		cancel()
		<-asked
	}()
	handle, err := i.source.namespaces()
	if err != nil { // after Shutdown
		<-ctx.Done()
		return
	}
	defer handle.Release()
	each := &eachNamespace{
		owner: i, namespaces: handle.Informer(), allowed: allowed, refusal: refusal,
		news: make(chan struct{}, 1), parts: map[string]informer.Part{},
		part: func(namespace string, late bool) informer.Part {
			p := requests.NewPacer(known, late, i.retry)
			return informer.Part{Namespace: namespace, ListerWatcher: i.listWatch(generation, version, namespace, p, nil)}
		},
	}
	told, err := each.namespaces.AddEventHandler(MetadataOnly(cache.ResourceEventHandlerFuncs{
		AddFunc: each.ring, DeleteFunc: each.ring,
	}))
	if err == nil { // or else it has stopped, and so will this one
		defer func() { _ = each.namespaces.RemoveEventHandler(told) }()
	}
	_ = i.core.RunChangingParts(ctx, listed, each.next)
}

// eachNamespace says which namespaces are followed one by one. Its fields are used by one goroutine.
type eachNamespace struct {
	owner, namespaces *Informer
	// allowed is closed when everything may be listed at once.
	allowed <-chan struct{}
	// refusal is why it may not.
	refusal error
	// news has an element when namespaces have come or gone.
	news chan struct{}
	// part makes what lists and watches a namespace; parts are those that run.
	part  func(namespace string, late bool) informer.Part
	parts map[string]informer.Part
	begun bool // there has been a set
}

// ring is told of namespaces.
func (e *eachNamespace) ring(any) {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// next waits for another set of parts than those that run; false when they are to end.
func (e *eachNamespace) next(ctx context.Context) ([]informer.Part, bool) {
	for ctx.Err() == nil {
		status, changed := e.namespaces.snapshot()
		names, known, err := e.names(status)
		e.owner.health.Consists(slices.Collect(maps.Keys(e.parts)), err, "namespaces "+e.owner.options.Namespaces.String())
		if known && e.take(names) {
			return slices.Collect(maps.Values(e.parts)), true
		}
		select {
		case <-e.news:
		case <-changed:
		case <-e.allowed:
			return nil, false
		case <-ctx.Done():
		}
	}
	return nil, false
}

// names returns the namespaces to follow; false while there is nothing to say about that. When the server does not
// tell which namespaces there are, these are those that the set has by name, and the error says so.
func (e *eachNamespace) names(status Status) (names []string, known bool, err error) {
	set := e.owner.options.Namespaces
	switch {
	case e.namespaces.HasSynced():
		names = e.namespaces.GetStore().ListKeys()
	case !status.Settled(), status.Reason == ReasonUnauthorized, status.State == StateStopped:
		return nil, false, nil
	default:
		if set.kind == namespacesMatching {
			names = slices.DeleteFunc(slices.Clone(set.names), func(name string) bool { return strings.Contains(name, "*") })
		}
		err = fmt.Errorf("%w; nor is it known which namespaces there are: %s", e.refusal, status.Message)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !set.fits(name) })
	return names, err == nil || len(names) > 0, err
}

// take makes these namespaces the ones that run, and reports whether that changes anything.
func (e *eachNamespace) take(names []string) bool {
	next := make(map[string]informer.Part, len(names))
	same := e.begun && len(names) == len(e.parts)
	for _, name := range names {
		part, ok := e.parts[name]
		if !ok {
			part, same = e.part(name, e.begun), false
		}
		next[name] = part
	}
	e.parts, e.begun = next, true
	return !same
}
