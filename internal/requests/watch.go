package requests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
)

// Patience is how long the initial events of a watch-list may pause before it is given up for a list. Some
// proxies drop the bookmark that ends the initial events. The watch would wait for it forever.
const Patience = 30 * time.Second

// openWatch is a watch that the server has accepted.
type openWatch struct {
	events
	*attempt
	ctx   context.Context // ends when the watch is silent for too long
	stop  func() bool     // calls off that the watch ends with ctx
	verb  Verb
	began time.Time // when it was requested, because some proxies hold an answer back until the first event
	// initial is the list that a watch-list begins with; nil for a watch, and when the list is complete.
	initial *initialList
	// live is true if an event has arrived, brought if one has arrived that is not of the initial list.
	live, brought bool
}

// initialList is the list that a watch-list begins with.
type initialList struct {
	asking  *asking
	release func() // gives the slot of the limiter back
	silence time.Duration
}

// watchInline passes the events of a watch on to take, on the goroutine of the caller.
func (l *listWatch) watchInline(
	ctx context.Context, options *metav1.ListOptions, take func(watch.Event) bool,
) error {
	o, err := l.openWatch(ctx, options)
	if err != nil {
		return err
	}
	defer l.finish(o)
	l.pass(o, take)
	return nil
}

// watch is watchInline on a goroutine of its own.
func (l *listWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	o, err := l.openWatch(ctx, &options)
	if err != nil {
		return nil, err
	}
	return l.follow(o), nil
}

// follow passes the events of an open watch on from a goroutine.
func (l *listWatch) follow(o *openWatch) watch.Interface {
	return newPipe(o.attempt, func(take func(watch.Event) bool) {
		defer l.finish(o)
		l.pass(o, take)
	})
}

func (l *listWatch) openWatch(ctx context.Context, options *metav1.ListOptions) (*openWatch, error) {
	if sendsInitialEvents(options) {
		return l.openWatchList(ctx, options)
	}
	return l.openAgain(ctx, options)
}

// openAgain requests a watch until the server accepts it or refuses it for good.
func (l *listWatch) openAgain(ctx context.Context, options *metav1.ListOptions) (*openWatch, error) {
	l.tweak(options)
	l.selection.ask(options)
	if l.noBookmarks {
		options.AllowWatchBookmarks = false
	}
	for {
		if err := l.pacer.awaitWatch(ctx); err != nil {
			return nil, err
		}
		o, err := l.open(ctx, VerbWatch, options)
		again := o.again(err)
		l.record(outcome{verb: VerbWatch, err: err, asked: o.wait, slow: o.slow, again: again})
		if err == nil {
			o.watch(l.pacer.silence(o.attempt, options.TimeoutSeconds))
			return o, nil
		}
		o.end()
		if !again || ctx.Err() != nil {
			return nil, err
		}
	}
}

// openWatchList requests a watch that begins with a list. It holds a slot of the limiter until the list is
// complete.
func (l *listWatch) openWatchList(ctx context.Context, options *metav1.ListOptions) (*openWatch, error) {
	if l.noBookmarks || l.pacer.mustList() {
		return nil, errStalled
	}
	l.tweak(options)
	asking := l.selection.ask(options)
	if err := l.pacer.awaitRound(ctx); err != nil {
		return nil, err
	}
	release, err := l.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	l.continuity.Listing(options)
	o, err := l.open(ctx, VerbWatchList, options)
	if err != nil {
		release()
		o.end()
		out := outcome{verb: VerbWatchList, err: err, asked: o.wait, slow: o.slow}
		if err == errNoAnswer {
			out, err = outcome{verb: VerbWatchList, phase: stalled}, errStalled
		}
		l.record(out)
		return nil, err
	}
	l.record(outcome{verb: VerbWatchList, slow: o.slow})
	silence := l.pacer.silence(o.attempt, options.TimeoutSeconds)
	o.initial = &initialList{asking: asking, release: release, silence: silence}
	o.watch(Patience)
	return o, nil
}

// open requests a watch. The caller ends the attempt when the watch has ended or failed.
func (l *listWatch) open(ctx context.Context, verb Verb, options *metav1.ListOptions) (*openWatch, error) {
	l.reports.RequestStarted(verb)
	o := &openWatch{verb: verb, began: time.Now()}
	o.ctx, o.attempt = l.attempt(ctx, verb, *options)
	var err error
	if verb == VerbWatch {
		err = l.continuity.Watching(o.ctx, options)
	}
	if err == nil {
		o.events, err = l.resource.Events(o.ctx, *options)
	}
	if failure := o.result(o.ctx, err); failure != nil {
		if err == nil {
			_ = o.Close() // the headers arrived too late
		}
		return o, failure
	}
	l.begin(o)
	return o, nil
}

// begin has the watch end with its context, and when the server turns out to have been restored.
func (l *listWatch) begin(o *openWatch) {
	o.stop = closeWith(o.ctx, o.attempt, o.events)
	events := o.events // not o, which keeps more
	l.continuity.Opened(func() { _ = events.Close() })
}

// closeWith has the events end with the context of their request. For those that do not end alone, a context
// needs memory.
func closeWith(ctx context.Context, a *attempt, e events) (stop func() bool) {
	if a.endsAlone {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = e.Close() })
}

// finish ends a watch. It is one function because each deferred call enlarges the stack of a quiet watch.
func (l *listWatch) finish(o *openWatch) {
	if o.initial != nil {
		o.initial.release()
	}
	silent := context.Cause(o.ctx) == errNoAnswer
	if silent && o.initial == nil {
		l.continuity.Failed(errNoAnswer)
	}
	l.continuity.Closed()
	if o.verb == VerbWatch {
		l.pacer.watched(silent, o.lively)
	}
	o.stop()
	_ = o.Close()
	o.end()
}

// pass passes events on until there are no more, or take returns false. The last event is an ERROR if the
// watch cannot go on or has brought nothing.
func (l *listWatch) pass(o *openWatch, take func(watch.Event) bool) {
	for {
		event, waited, err := o.Next()
		if err != nil {
			l.ended(o, err, take)
			return
		}
		if event.Type == watch.Error {
			l.failed(o, event)
			take(event)
			return
		}
		if waited || !o.live {
			l.came(o)
		}
		o.brought = o.initial == nil
		if isSkipped(event) {
			continue
		}
		if o.initial != nil && endsInitialEvents(event) {
			l.listed(o)
		}
		if l.keep != nil && event.Type != watch.Bookmark && !l.keep(event.Object) {
			continue
		}
		if !take(event) {
			return
		}
	}
}

// came reports that something arrived. The functions that wait for events do not do this themselves, because
// their frames are small: see docs/design/types.md.
func (l *listWatch) came(o *openWatch) {
	if !o.live {
		o.live = true
		o.lively = time.Since(o.last) < silenceHTTP1
		if o.verb == VerbWatch {
			l.record(outcome{verb: VerbWatch, phase: flowing})
		}
	}
	l.reports.Contact(o.initial != nil)
}

// listed records that the initial events are complete.
func (l *listWatch) listed(o *openWatch) {
	list := o.initial
	o.initial = nil
	list.release()
	l.reports.Contact(false)
	l.record(outcome{verb: VerbWatchList, phase: listed})
	list.asking.watched()
	now := time.Now()
	l.reports.Listed(now.Sub(o.began))
	o.began = now // of what is watched
	o.watch(list.silence)
}

// failed records an ERROR event.
func (l *listWatch) failed(o *openWatch, event watch.Event) {
	err := apierrors.FromObject(event.Object)
	if !o.live && apierrors.HasStatusCause(err, undecodableCause) {
		l.reports.NoContact()
	}
	l.broke(o, err)
}

// broke records that a watch has failed after it was opened, unless the reader has ended it.
func (l *listWatch) broke(o *openWatch, err error) {
	if o.initial != nil {
		o.initial.release()
		l.record(outcome{verb: VerbWatchList, err: err})
		return
	}
	if o.ctx.Err() == nil {
		l.record(outcome{verb: VerbWatch, phase: broken, err: err})
	}
}

// ended records that a watch has ended with an error of reading it, which is io.EOF where the server has
// ended it. It passes an ERROR event to take if everything has to be listed.
func (l *listWatch) ended(o *openWatch, err error, take func(watch.Event) bool) {
	switch {
	case o.initial != nil:
		l.endedEarly(o, err, take)
	case o.ctx.Err() == nil && !endsWatches(err) && !l.continuity.passed():
		event := unreadable(err)
		l.failed(o, event)
		take(event)
	default:
		if err := l.closed(o); err != nil {
			take(endedEvent(err.Error()))
		}
	}
}

// endedEarly is ended before the initial events are complete. A reflector would request them again and again
// if they have no end. After an error it lists.
func (l *listWatch) endedEarly(o *openWatch, err error, take func(watch.Event) bool) {
	event := endedEvent("the watch-list ended before its initial events did")
	switch {
	case context.Cause(o.ctx) == errNoAnswer:
		o.initial.release()
		l.record(outcome{verb: VerbWatchList, phase: stalled})
		event = endedEvent(fmt.Sprintf("the initial events of a watch-list stopped for %v", Patience))
	case o.ctx.Err() != nil:
		return
	case !endsWatches(err) && !l.continuity.passed():
		event = unreadable(err)
		l.failed(o, event)
	default:
		if !o.live {
			l.reports.NoContact()
		}
		l.broke(o, apierrors.FromObject(event.Object))
	}
	take(event)
}

// closed records that the server has ended a watch, unless the reader has ended it. It returns an error if
// the watch was closed at once and has brought nothing: then everything has to be listed.
func (l *listWatch) closed(o *openWatch) error {
	if o.ctx.Err() != nil {
		return nil
	}
	l.continuity.EndedByServer()
	lasted := time.Since(o.began)
	if lasted < ShortWatch && !o.brought {
		l.reports.NoContact()
	}
	l.record(outcome{verb: o.verb, phase: closed, lasted: lasted, brought: o.brought})
	if o.brought || lasted >= ShortWatch {
		return nil
	}
	return errWatchClosed
}

// endsWatches reports whether a watch that fails with err has just ended, as every watch does.
func endsWatches(err error) bool {
	return err == io.EOF || err == io.ErrUnexpectedEOF || unanswered(err)
}

// unanswered reports whether a request failed because its connection did.
func unanswered(err error) bool {
	return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) || utilnet.IsConnectionReset(err) ||
		utilnet.IsHTTP2ConnectionLost(err)
}

// unreadable is the event of a failure to read or to decode.
func unreadable(err error) watch.Event {
	err = fmt.Errorf("unable to decode an event from the watch stream: %w", err)
	return watch.Event{Type: watch.Error, Object: undecodable.AsObject(err)}
}

// undecodable makes the object of an ERROR event of an error, as client-go does.
var undecodable = apierrors.NewClientErrorReporter(
	http.StatusInternalServerError, http.MethodGet, undecodableCause)

// undecodableCause marks ERROR events of decoding.
const undecodableCause = "ClientWatchDecoding"

// endedEvent makes a reflector fall back from a watch or watch-list to a list.
func endedEvent(why string) watch.Event {
	return watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonTimeout,
		Code: http.StatusGatewayTimeout, Message: why,
	}}
}

func sendsInitialEvents(options *metav1.ListOptions) bool {
	return options.SendInitialEvents != nil && *options.SendInitialEvents
}

func endsInitialEvents(e watch.Event) bool {
	if e.Type != watch.Bookmark {
		return false
	}
	o, err := meta.Accessor(e.Object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
