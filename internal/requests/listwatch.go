package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/internal/packed"
)

// listWatch is what one reflector lists and watches through: a type, or one namespace of it, for one generation.
// It reports the outcome of each request, because refused connections, throttling and failing watches never
// reach a reflector's watch error handler; it paces the requests by what went wrong; and it holds a slot of the
// limiter while it lists. What follows from which outcome is decided by step.
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
	// tell is called with the failures that the reflector keeps from its watch error handler.
	tell func(error)
	// forbidden is called, instead of reporting it, when a list or watch is forbidden, and ends the requests; nil:
	// that is a failure like others.
	forbidden func(error)
	// began is when the list that is under way was asked for. The reflector lists one page after the other.
	began time.Time
}

// errStalled is what an initial watch-list is answered with after one has stalled, the way through to the server not being
// made for it, and where nobody wants the bookmark that ends it. The reflector lists instead.
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
	if e.tells {
		l.tell(e.err)
	}
}

// panicked records that a list or watch could not be handled.
func (l *listWatch) panicked(value any) {
	err := fmt.Errorf("%w: %v", errPanicked, value)
	l.reports.Answer(VerbWatch, err)
	l.tell(err)
}

// attempt returns the next request, and its context.
func (l *listWatch) attempt(ctx context.Context, verb Verb, options metav1.ListOptions) (context.Context, *attempt) {
	return newAttempt(ctx, l.pacer.patience(verb, options.TimeoutSeconds), func() { l.reports.Throttled(verb) })
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
		list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return !l.keep(&u) })
	case *packed.List:
		list.Items = slices.DeleteFunc(list.Items, func(o *packed.Object) bool { return !l.keep(o) })
	}
}

func (l *listWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		return l.watchList(ctx, options)
	}
	l.tweak(&options)
	l.selection.ask(&options)
	if l.noBookmarks {
		options.AllowWatchBookmarks = false
	}
	began, w, a, err := l.openAgain(ctx, options)
	if err != nil {
		return nil, err
	}
	l.continuity.Opened(w.Stop)
	came := false
	return NewStream(w, Hooks{
		Silence: untilTimeout(options.TimeoutSeconds),
		Ended: func() {
			l.continuity.Closed()
			a.end()
		},
		Keep: l.keep,
		First: func() {
			came = true
			l.record(outcome{verb: VerbWatch, phase: flowing})
		},
		Came: l.reports.Contact,
		Failed: func(err error) {
			l.unproven(came, err)
			l.broke(ctx, err)
		},
		Silent: func() { l.continuity.Failed(errNoAnswer) },
		Closed: func(brought bool) error { return l.closed(ctx, VerbWatch, began, brought) },
	}), nil
}

// unproven records that a watch failed before an event came that could be decoded: accepting it was no contact. An ERROR
// event of the server is one.
func (l *listWatch) unproven(came bool, err error) {
	if !came && (apierrors.HasStatusCause(err, undecodableCause) || errors.Is(err, errWatchClosed) || isEnded(err)) {
		l.reports.NoContact()
	}
}

// broke records that a watch has failed after it was opened, unless ctx has ended it.
func (l *listWatch) broke(ctx context.Context, err error) {
	if ctx.Err() == nil {
		l.record(outcome{verb: VerbWatch, phase: broken, err: err})
	}
}

// closed records that a watch has ended that was open since then, unless ctx has ended it. It returns an error when that
// was at once, and nothing came: then all is to be listed again. A reflector would count the pause before the watch, too.
func (l *listWatch) closed(ctx context.Context, verb Verb, since time.Time, brought bool) error {
	if ctx.Err() != nil {
		return nil
	}
	l.continuity.EndedByServer()
	lasted := time.Since(since)
	if lasted < ShortWatch {
		l.unproven(brought, errWatchClosed)
	}
	l.record(outcome{verb: verb, phase: closed, lasted: lasted, brought: brought})
	if brought || lasted >= ShortWatch {
		return nil
	}
	return errWatchClosed
}

// watchList opens a watch that begins with a list. A slot is held until that is over.
func (l *listWatch) watchList(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if l.noBookmarks || l.pacer.mustList() {
		return nil, errStalled
	}
	l.tweak(&options)
	asking := l.selection.ask(&options)
	if err := l.pacer.awaitRound(ctx); err != nil {
		return nil, err
	}
	release, err := l.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	l.continuity.Listing(&options)
	began := time.Now()
	l.reports.RequestStarted(VerbWatchList)
	w, a, err := l.openWatch(ctx, VerbWatchList, options)
	if err != nil {
		release()
		a.end()
		o := outcome{verb: VerbWatchList, err: err, asked: a.wait, slow: a.slow}
		if err == errNoAnswer {
			o, err = outcome{verb: VerbWatchList, phase: stalled}, errStalled
		}
		l.record(o)
		return nil, err
	}
	l.record(outcome{verb: VerbWatchList, slow: a.slow})
	l.continuity.Opened(w.Stop)
	var listedAt time.Time // zero: not yet
	came := false
	return NewStream(w, Hooks{
		Initial: true,
		Silence: untilTimeout(options.TimeoutSeconds),
		Keep:    l.keep,
		First:   func() { came = true },
		Came:    l.reports.Contact,
		Failed: func(err error) {
			l.unproven(came, err)
			if !listedAt.IsZero() {
				l.broke(ctx, err)
				return
			}
			release()
			l.record(outcome{verb: VerbWatchList, err: err})
		},
		Listed: func() {
			listedAt = time.Now()
			release()
			l.record(outcome{verb: VerbWatchList, phase: listed})
			asking.watched()
			l.reports.Listed(listedAt.Sub(began))
		},
		Silent: func() { l.continuity.Failed(errNoAnswer) },
		Closed: func(brought bool) error { return l.closed(ctx, VerbWatchList, listedAt, brought) },
		Stalled: func() {
			release()
			l.record(outcome{verb: VerbWatchList, phase: stalled})
		},
		Ended: func() {
			l.continuity.Closed()
			release()
			a.end()
		},
	}), nil
}

// openAgain asks for a watch until the server accepts it, or refuses it for good.
func (l *listWatch) openAgain(ctx context.Context, options metav1.ListOptions) (began time.Time, w watch.Interface, a *attempt, err error) {
	for {
		if err := l.pacer.awaitWatch(ctx); err != nil {
			return began, nil, nil, err
		}
		l.reports.RequestStarted(VerbWatch)
		began = time.Now() // some proxies hold an answer back until the first event
		w, a, err = l.openWatch(ctx, VerbWatch, options)
		again := a.again(err)
		l.record(outcome{verb: VerbWatch, err: err, asked: a.wait, slow: a.slow, again: again})
		if err == nil {
			return began, w, a, nil
		}
		a.end()
		if !again || ctx.Err() != nil {
			return began, nil, nil, err
		}
	}
}

// openWatch asks for a watch. The caller ends the attempt when the watch has ended, or failed.
func (l *listWatch) openWatch(ctx context.Context, verb Verb, options metav1.ListOptions) (watch.Interface, *attempt, error) {
	ctx, a := l.attempt(ctx, verb, options)
	var w watch.Interface
	var err error
	if verb == VerbWatch {
		err = l.continuity.Watching(ctx, &options)
	}
	if err == nil {
		a.sent() // clients of the user do not report that
		w, err = l.resource.Watch(ctx, options)
		a.answered()
	}
	if failure := a.result(ctx, err); failure != nil {
		if err == nil {
			w.Stop()
		}
		return nil, a, failure
	}
	return w, a, nil
}
