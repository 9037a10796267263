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

	"github.com/crdcache/crdcache/internal/packed"
)

// listWatch is what one reflector lists and watches through: a type, or one namespace of it, for one
// generation. It reports the outcome of each request, because refused connections, throttling and failing
// watches never reach a reflector's watch error handler; it paces the requests by what went wrong; and it
// holds a slot of the limiter while it lists. What follows from which outcome is decided by step.
type listWatch struct {
	resource resource
	tweak    func(*metav1.ListOptions)
	keep     func(runtime.Object) bool // nil: everything
	// selection is what is read of a shard; nil: everything.
	selection *Selection
	// noBookmarks says that watches ask for none, so that there is no watch-list.
	noBookmarks bool
	reports     Reporter
	limiter     *Limiter
	pacer       *Pacer
	// continuity tells whether a watch may go on after an outage.
	continuity *Continuity
	// forbidden is called, instead of reporting it, when a list or watch is forbidden, and ends the requests;
	// nil: that is a failure like others.
	forbidden func(error)
	// began is when the list that is under way was asked for. The reflector lists one page after the other.
	began time.Time
}

// errStalled is what an initial watch-list is answered with after one has stalled, the way through to the
// server not being made for it, and where nobody wants the bookmark that ends it. The reflector lists
// instead.
var errStalled = apierrors.NewTimeoutError("the initial events of a watch-list stopped before their end", 0)

// record has an outcome take its effect.
func (l *listWatch) record(o outcome) {
	o.handsOver = l.forbidden != nil
	l.continuity.Failed(o.err)
	e := l.pacer.record(o)
	if e.throttles {
		l.limiter.throttled(e.wait)
	}
	if e.eases {
		l.limiter.succeeded()
	}
	if e.handsOver {
		l.forbidden(e.err)
	}
	if e.reports {
		l.reports.Answer(e.verb, e.err)
	}
	if e.opens {
		l.reports.WatchOpened()
	}
}

// panicked records that a list or watch could not be handled.
func (l *listWatch) panicked(value any) {
	l.reports.Answer(VerbWatch, fmt.Errorf("%w: %v", errPanicked, value))
}

// attempt returns the next request, and its context.
func (l *listWatch) attempt(ctx context.Context, verb Verb,
	options metav1.ListOptions) (context.Context, *attempt) {
	return newAttempt(ctx, l.pacer.patience(verb, options.TimeoutSeconds),
		func() { l.reports.Throttled(verb) })
}

func (l *listWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	l.tweak(&options)
	asking := l.selection.ask(&options)
	verb := VerbListMore
	if options.Continue == "" {
		verb = VerbList
		if err := l.pacer.awaitList(ctx); err != nil {
			return nil, err
		}
	}
	release, err := l.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if verb == VerbList {
		l.continuity.Listing(&options)
		l.began = time.Now()
	}
	l.reports.RequestStarted(verb)
	request, a := l.attempt(ctx, verb, options)
	defer a.end()
	list, err := l.resource.List(request, options)
	release()
	err = a.result(request, err)
	l.record(outcome{verb: verb, err: err, asked: a.wait, slow: a.slow})
	if err != nil {
		return nil, err
	}
	if m, err := meta.ListAccessor(list); err == nil && m.GetContinue() == "" {
		l.reports.Listed(time.Since(l.began))
	}
	if l.keep != nil {
		l.dropUnwanted(list)
	}
	asking.listed(list)
	return list, nil
}

// dropUnwanted takes what is not to be kept out of a list.
func (l *listWatch) dropUnwanted(list runtime.Object) {
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		list.Items = slices.DeleteFunc(list.Items,
			func(u unstructured.Unstructured) bool { return !l.keep(&u) })
	case *packed.List:
		list.Items = slices.DeleteFunc(list.Items, func(o *packed.Object) bool { return !l.keep(o) })
	}
}
