package dynamicinformer

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/stream"
)

// listWatch is what one reflector lists and watches through: a type, or one namespace of it, for one generation.
// It reports the outcome of each request, because refused connections, throttling and failing watches never
// reach a reflector's watch error handler; it paces the requests by what went wrong; and it holds a slot of the
// limiter while it lists.
type listWatch struct {
	resource requests
	tweak    func(*metav1.ListOptions)
	keep     func(runtime.Object) bool // nil: everything
	reports  reporter
	limiter  *limiter
	pacer    *pacer
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

// slotPatience is how long a list holds its slot at most.
const slotPatience = time.Minute

// source is what the informers of a factory share.
type source struct {
	client       dynamic.Interface
	limiter      *limiter
	onWatchError func(schema.GroupVersionResource, error) // may be nil
	logger       *klog.Logger                             // may be nil
	// namespaces returns a claim to an informer of all namespaces.
	namespaces func() (*Handle, error)
}

// newListWatch returns what a reflector lists and watches gvr through, in a namespace or (empty) all. forbidden is
// called when a list or watch is, which is then no failure; it may be nil.
func newListWatch(from source, gvr schema.GroupVersionResource, namespace string, options ResourceOptions, h *health, p *pacer, forbidden func(error)) cache.ListerWatcher {
	l := &listWatch{
		tweak:   options.tweak(gvr),
		keep:    options.Namespaces.filter(),
		reports: h.reporter(namespace),
		limiter: from.limiter,
		pacer:   p,
		unheard: func(error) {},

		forbidden: forbidden,
	}
	var err error
	if l.resource, err = newRequests(from.client, gvr, namespace, options); err != nil {
		l.resource = failedRequests{err}
	}
	if from.onWatchError != nil {
		l.unheard = func(err error) { from.onWatchError(gvr, err) }
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: l.list, WatchFuncWithContext: l.watch,
	}, from.client)
}

// tweak returns what completes the options of each request.
func (o ResourceOptions) tweak(gvr schema.GroupVersionResource) func(*metav1.ListOptions) {
	return func(request *metav1.ListOptions) {
		if o.LabelSelector != nil {
			request.LabelSelector = o.LabelSelector.String()
		}
		if o.FieldSelector != nil {
			request.FieldSelector = o.FieldSelector.String()
		}
		if o.TweakListOptions != nil {
			o.TweakListOptions(gvr, request)
		}
	}
}

func (l *listWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	l.tweak(&options)
	if options.Continue == "" && !l.fallback.Swap(false) {
		if err := l.pacer.awaitRound(ctx); err != nil {
			return nil, err
		}
	}
	verb := verbList
	if options.Continue != "" {
		verb = verbListMore
	}
	release, err := l.limiter.acquire(ctx)
	if err != nil {
		return nil, err
	}
	// A request that nobody answers must not keep the lists of other types waiting for ever.
	impatient := time.AfterFunc(slotPatience, release)
	l.reports.ask()
	list, err := l.resource.List(l.noting(ctx, verb), options)
	impatient.Stop()
	release()
	if l.forbidden != nil && reasonOf(err) == ReasonForbidden {
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
	l.reports.ask()
	w, err := l.resource.Watch(l.noting(ctx, verbWatch), options)
	if l.forbidden != nil && reasonOf(err) == ReasonForbidden {
		l.forbidden(err)
		return nil, err
	}
	l.answered(verbWatch, err)
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
		Came:   l.reports.sign,
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
	release, err := l.limiter.acquire(ctx)
	if err != nil {
		return nil, err
	}
	l.reports.ask()
	ctx, cancel := context.WithCancelCause(ctx)
	impatient := time.AfterFunc(stream.Patience, func() { cancel(errStalled) })
	w, err := l.resource.Watch(l.noting(ctx, verbWatchList), options)
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
	l.reports.answer(verbWatchList, nil)
	listed := false
	return stream.New(w, stream.Hooks{
		Initial: true,
		Keep:    l.keep,
		Came:    l.reports.sign,
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
		l.answered(verbWatchList, err)
		l.failed(err)
		l.unheard(err)
	case reasonOf(err) == ReasonNone: // the reflector asks for a watch-list of the present state
		l.reports.answer(verbWatchList, err)
	default:
		l.fallback.Store(true)
	}
}

// broken takes in that a watch has failed after it was opened.
func (l *listWatch) broken(ctx context.Context, err error) {
	l.reports.ended(ctx, err)
	if reasonOf(err) == ReasonNone {
		return // part of the protocol
	}
	l.failed(err)
	l.unheard(err)
}

// noting returns a context for a request that takes note of 429s: a client would repeat such requests by itself, and
// hold the slot meanwhile.
func (l *listWatch) noting(ctx context.Context, verb requestVerb) context.Context {
	return withThrottleNote(ctx, func(wait time.Duration) {
		l.asked.Store(int64(wait))
		l.reports.throttled(verb)
	})
}

// answered reports how a request was answered. That the server asks for time is no failure, unless it says that
// something else is wrong.
func (l *listWatch) answered(verb requestVerb, err error) {
	if reasonOf(err) != ReasonThrottled || l.asked.Load() == 0 {
		l.reports.answer(verb, err)
	}
}

func (l *listWatch) failed(err error) {
	wait := time.Duration(l.asked.Swap(0))
	switch reasonOf(err) {
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
