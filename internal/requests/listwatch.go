package requests

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/requests/stream"
)

// listWatch is what one reflector lists and watches through: a type, or one namespace of it, for one generation.
// It reports the outcome of each request, because refused connections, throttling and failing watches never
// reach a reflector's watch error handler; it paces the requests by what went wrong; and it holds a slot of the
// Limiter while it lists.
type listWatch struct {
	resource resource
	tweak    func(*metav1.ListOptions)
	keep     func(runtime.Object) bool // nil: everything
	reports  Reporter
	limiter  *Limiter
	pacer    *Pacer
	// unheard is called with the failures that the reflector keeps from its watch error handler.
	unheard func(error)
	// forbidden is called, instead of reporting it, when a list or watch is forbidden, and ends the requests; nil:
	// that is a failure like others.
	forbidden func(error)

	// asked is how long the server wants to be left alone, as its last answer says.
	asked atomic.Int64
	// fallback is set while the reflector is about to list because a watch-list failed: that is part of the
	// same round.
	fallback atomic.Bool
	// stalls is set once a watch-list has stalled: there won't be another.
	stalls atomic.Bool
}

// errStalled is what an initial watch-list is answered with after one has stalled: the way through to the server
// is not made for it. The reflector lists instead.
var errStalled = apierrors.NewTimeoutError("the initial events of a watch-list stopped before their end", 0)

// SlotPatience is how long a list holds its slot at most.
const SlotPatience = time.Minute

// Server is what the requests of a factory share.
type Server struct {
	Client  dynamic.Interface
	Limiter *Limiter
	// OnFailure is called with the failures that a reflector keeps from its watch error handler; it may be nil.
	OnFailure func(schema.GroupVersionResource, error)
}

// Target is what one reflector follows.
type Target struct {
	GVR       schema.GroupVersionResource
	Namespace string // empty: all
	Form      Form
	// Tweak completes the options of each request.
	Tweak func(*metav1.ListOptions)
	// Keep tells which objects are passed on; nil: all.
	Keep func(runtime.Object) bool
}

// Reporter records the outcomes of the requests for one target.
type Reporter interface {
	// Ask records that a request is about to be sent.
	Ask()
	// Answer records the outcome of a request; err is nil when the server accepted it.
	Answer(verb Verb, err error)
	// Ended records the error that a watch ended with, unless ctx, that of the request, has ended it.
	Ended(ctx context.Context, err error)
	// Throttled records that the server answered a request with 429.
	Throttled(verb Verb)
	// Sign records an event or a bookmark of a watch. owing says that the initial list has not ended yet.
	Sign(owing bool)
}

// ListWatch returns what a reflector lists and watches target through. forbidden is called when a list or watch is,
// which is then no failure; it may be nil.
func (s *Server) ListWatch(target Target, reports Reporter, p *Pacer, forbidden func(error)) cache.ListerWatcher {
	l := &listWatch{
		tweak:   target.Tweak,
		keep:    target.Keep,
		reports: reports,
		limiter: s.Limiter,
		pacer:   p,
		unheard: func(error) {},

		forbidden: forbidden,
	}
	var err error
	if l.resource, err = newResource(s.Client, target.GVR, target.Namespace, target.Form); err != nil {
		l.resource = failedResource{err}
	}
	if s.OnFailure != nil {
		l.unheard = func(err error) { s.OnFailure(target.GVR, err) }
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: l.list, WatchFuncWithContext: l.watch,
	}, s.Client)
}

// AwaitRight waits until target may be listed and watched, which refusal says that it may not, asking now and then.
// It returns false when ctx ends before.
func (s *Server) AwaitRight(ctx context.Context, target Target, p *Pacer, refusal error) bool {
	resource, err := newResource(s.Client, target.GVR, target.Namespace, target.Form)
	if err != nil {
		return false
	}
	p.failed(refusal, 0)
	for p.awaitRound(ctx) == nil {
		release, err := s.Limiter.Acquire(ctx)
		if err != nil {
			return false
		}
		err = mayRead(ctx, resource, target.Tweak)
		release()
		if err == nil {
			return true
		}
		p.failed(err, 0)
	}
	return false
}

// mayRead asks for one object and for a watch, and gives the latter up at once.
func mayRead(ctx context.Context, resource resource, tweak func(*metav1.ListOptions)) error {
	request := metav1.ListOptions{Limit: 1}
	tweak(&request)
	list, err := resource.List(ctx, request)
	if err != nil {
		return err
	}
	request.Limit = 0
	if m, err := meta.ListAccessor(list); err == nil {
		request.ResourceVersion = m.GetResourceVersion() // so that no more than what is new comes
	}
	w, err := resource.Watch(ctx, request)
	if err != nil {
		return err
	}
	w.Stop()
	return nil
}

func (l *listWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	l.tweak(&options)
	if options.Continue == "" && !l.fallback.Swap(false) {
		if err := l.pacer.awaitRound(ctx); err != nil {
			return nil, err
		}
	}
	verb := VerbList
	if options.Continue != "" {
		verb = VerbListMore
	}
	release, err := l.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	// A request that nobody answers must not keep the lists of other types waiting for ever.
	impatient := time.AfterFunc(SlotPatience, release)
	l.reports.Ask()
	list, err := l.resource.List(l.noting(ctx, verb), options)
	impatient.Stop()
	release()
	if l.forbidden != nil && ReasonOf(err) == ReasonForbidden {
		l.forbidden(err)
		return nil, err
	}
	l.answered(verb, err)
	if err != nil {
		l.failed(err)
		return nil, err
	}
	l.succeeded()
	if l.keep != nil {
		l.thin(list)
	}
	return list, nil
}

// thin takes what is not to be kept out of a list.
func (l *listWatch) thin(list runtime.Object) {
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return !l.keep(&u) })
	case *packed.List:
		list.Items = slices.DeleteFunc(list.Items, func(o *packed.Object) bool { return !l.keep(o) })
	}
}

func (l *listWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents
	if initial {
		return l.watchList(ctx, options)
	}
	l.tweak(&options)
	if err := l.pacer.awaitWatch(ctx); err != nil {
		return nil, err
	}
	l.reports.Ask()
	w, err := l.resource.Watch(l.noting(ctx, VerbWatch), options)
	if l.forbidden != nil && ReasonOf(err) == ReasonForbidden {
		l.forbidden(err)
		return nil, err
	}
	l.answered(VerbWatch, err)
	if err != nil {
		l.failed(err)
		if repeated(err) {
			l.unheard(err)
		}
		return nil, err
	}
	return stream.New(w, stream.Hooks{
		Keep:   l.keep,
		First:  l.pacer.succeeded,
		Came:   l.reports.Sign,
		Failed: func(err error) { l.broken(ctx, err) },
	}), nil
}

// watchList opens a watch that begins with a list. A slot is held until that is over.
func (l *listWatch) watchList(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if l.stalls.Load() {
		return nil, errStalled
	}
	l.tweak(&options)
	if err := l.pacer.awaitRound(ctx); err != nil {
		return nil, err
	}
	release, err := l.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	l.reports.Ask()
	ctx, cancel := context.WithCancelCause(ctx)
	impatient := time.AfterFunc(stream.Patience, func() { cancel(errStalled) })
	w, err := l.resource.Watch(l.noting(ctx, VerbWatchList), options)
	if !impatient.Stop() && context.Cause(ctx) == errStalled {
		if err == nil {
			w.Stop()
		}
		l.stalls.Store(true)
		err = errStalled
	}
	if err != nil {
		release()
		cancel(nil)
		l.refused(err)
		return nil, err
	}
	l.reports.Answer(VerbWatchList, nil)
	listed := false
	return stream.New(w, stream.Hooks{
		Initial: true,
		Keep:    l.keep,
		Came:    l.reports.Sign,
		Failed: func(err error) {
			if listed {
				l.broken(ctx, err)
				return
			}
			release()
			l.refused(err)
		},
		Listed: func() {
			listed = true
			release()
			l.succeeded()
		},
		Stalled: func() {
			l.stalls.Store(true)
			release()
			l.fallback.Store(true)
		},
		Ended: func() {
			release()
			cancel(nil)
		},
	}), nil
}

// refused takes in that a watch-list has failed before its initial events were over. Unless the reflector
// repeats it, a list follows at once, whose outcome counts: it tells whether the type can be read, and what the
// server has to say.
func (l *listWatch) refused(err error) {
	switch {
	case repeated(err):
		l.answered(VerbWatchList, err)
		l.failed(err)
		l.unheard(err)
	case ReasonOf(err) == ReasonNone: // the reflector asks for a watch-list of the present state
		l.reports.Answer(VerbWatchList, err)
	default:
		l.fallback.Store(true)
	}
}

// broken takes in that a watch has failed after it was opened.
func (l *listWatch) broken(ctx context.Context, err error) {
	l.reports.Ended(ctx, err)
	if ReasonOf(err) == ReasonNone {
		return // part of the protocol
	}
	l.failed(err)
	l.unheard(err)
}

// noting returns a context for a request that takes note of 429s: a client would repeat such requests by itself, and
// hold the slot meanwhile.
func (l *listWatch) noting(ctx context.Context, verb Verb) context.Context {
	return withThrottleNote(ctx, func(wait time.Duration) {
		l.asked.Store(int64(wait))
		l.reports.Throttled(verb)
	})
}

// answered reports how a request was answered. That the server asks for time is no failure, unless it says that
// something else is wrong.
func (l *listWatch) answered(verb Verb, err error) {
	if ReasonOf(err) != ReasonThrottled || l.asked.Load() == 0 {
		l.reports.Answer(verb, err)
	}
}

func (l *listWatch) failed(err error) {
	wait := time.Duration(l.asked.Swap(0))
	switch ReasonOf(err) {
	case ReasonNone:
		return // part of the protocol
	case ReasonThrottled:
		seconds, _ := apierrors.SuggestsClientDelay(err)
		wait = max(wait, time.Duration(seconds)*time.Second)
		l.limiter.throttled(wait)
	default:
		wait = 0
	}
	l.pacer.failed(err, wait)
}

func (l *listWatch) succeeded() {
	l.pacer.succeeded()
	l.limiter.succeeded()
}

// repeated reports whether the reflector tries a watch-list that failed with err again.
func repeated(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}
