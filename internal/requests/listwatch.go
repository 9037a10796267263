package requests

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/packed"
)

// listWatch is an informer.InlineWatcher. It makes the list and watch requests of one reflector: for a type
// or one of its namespaces, during one incarnation. It reports the outcome of each request, because refused
// connections, throttling and failing watches never reach a reflector's watch error handler. It paces the
// requests by the kind of failure, and holds a slot of the limiter during a list. See also step.
type listWatch struct {
	Target
	client   dynamic.Interface
	resource resource
	filter   func(runtime.Object) bool // Target.combinedFilter
	reports  Reporter
	limiter  *Limiter
	pacer    *Pacer
	// continuity decides whether a watch can continue after an outage.
	continuity   *Continuity
	interruption interruption
	// forbidden, if set, is called when a request is forbidden. It is not reported, and ends the requests.
	forbidden func(error)
	// stalled is true after a watch-list has stalled, until a list succeeds, which shows that the server
	// works. remarkedStall is true while the status states that lists replace watch-lists.
	stalled, remarkedStall bool
	// listStarted is the start of the current list. One field is enough, because pages are requested in turn.
	listStarted time.Time
}

// errStalled makes the reflector list instead of requesting a watch-list. It is used after a watch-list has
// stalled, because a proxy may not support watch-lists, and if bookmarks are disabled.
var errStalled = apierrors.NewTimeoutError("the initial events of a watch-list stopped before their end", 0)

// record applies the effects of an outcome.
func (l *listWatch) record(o requestOutcome) {
	o.forbiddenHandled = l.forbidden != nil
	l.continuity.Failed(o.err)
	e := l.pacer.record(o)
	if responded := o.provesContact(); responded || isConnectionFailure(o.err) {
		l.limiter.recordContact(responded)
	}
	if e.throttleLimiter {
		l.limiter.throttled(e.wait)
		if !e.reports {
			l.reports.Throttled(o.verb)
		}
	}
	if e.listSucceeded {
		l.limiter.succeeded()
	}
	if e.callForbidden {
		l.forbidden(e.err)
	}
	if e.reports {
		l.reports.RequestEnded(e.verb, e.err)
	}
	if e.watchOpened {
		l.reports.WatchOpened()
		l.remarkPolls()
	}
}

// Panicked records that a panic occurred while handling a list or watch.
func (l *listWatch) Panicked(value any) {
	l.reports.RequestEnded(VerbWatch, fmt.Errorf("%w: %v", errPanicked, value))
}

// attempt returns the next request and its context.
func (l *listWatch) attempt(ctx context.Context, verb Verb) (context.Context, *attempt) {
	request, a := newAttempt(ctx, l.pacer.headerTimeout(verb))
	a.limiter = l.limiter
	return request, a
}

// ListWithContext lists a page.
func (l *listWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	l.Tweak(&options)
	shard := l.Selection.prepareList(&options)
	verb, fallback := VerbListMore, false
	if options.Continue == "" {
		var err error
		verb = VerbList
		if fallback, err = l.pacer.awaitList(ctx); err != nil {
			return nil, err
		}
	}
	acquire := l.limiter.Acquire
	if fallback || verb == VerbListMore { // it has waited already
		acquire = l.limiter.AcquireFirst
	}
	release, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	if verb == VerbList {
		l.continuity.BeforeList(&options)
		l.listStarted = time.Now()
	}
	l.reports.RequestStarted(verb)
	request, a := l.attempt(ctx, verb)
	defer a.end()
	list, err := l.resource.List(request, options, true)
	release()
	err = a.resultError(request, err)
	l.record(requestOutcome{verb: verb, err: err, retryAfter: a.retryAfter})
	if err != nil {
		return nil, err
	}
	if l.stalled {
		l.stalled = false
		l.pacer.watches.stalled()
	}
	if m, err := meta.ListAccessor(list); err == nil && m.GetContinue() == "" {
		l.reports.ListCompleted(time.Since(l.listStarted))
	}
	filterList(list, acceptBoth(l.filter, l.Selects))
	shard.listed(list)
	return list, nil
}

// filterList removes the objects that are not accepted. A nil filter accepts all.
func filterList(list runtime.Object, accepts func(runtime.Object) bool) {
	if accepts == nil {
		return
	}
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		list.Items = slices.DeleteFunc(list.Items,
			func(u unstructured.Unstructured) bool { return !accepts(&u) })
	case *packed.List:
		list.Items = slices.DeleteFunc(list.Items, func(o *packed.Object) bool { return !accepts(o) })
	}
}
