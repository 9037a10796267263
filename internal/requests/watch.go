package requests

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

const (
	// InitialEventsTimeout is the longest accepted pause between the initial events of a watch-list. After a
	// longer pause, a list replaces the watch-list. Some proxies buffer responses, or drop the bookmark that
	// ends the initial events, so that the watch would wait forever.
	InitialEventsTimeout = 10 * time.Second
	// timePerInitialEvent is the time for each initial event in addition to InitialEventsTimeout, whatever
	// the pauses: later additions are no initial events.
	timePerInitialEvent = 10 * time.Millisecond
	// lastEventsTimeout is the time for the initial events after another event than an addition. A server
	// sends few of them before the end of the initial events.
	lastEventsTimeout = 5 * time.Second
)

// openWatch is a watch that the server has accepted.
type openWatch struct {
	events
	*attempt
	ctx  context.Context // ends when the watch is silent for too long
	stop func() bool     // detaches the watch from ctx
	verb Verb
	// began is the start of the request, or of the events after a watch-list's initial list. It is not the
	// time of the response, because some proxies hold back the response until the first event.
	began time.Time
	// initial is the initial list of a watch-list. It is nil after the list, and for other watches.
	initial *initialList
	// sawEvent is set after the first event, sawLiveEvent after the first one that follows the initial list.
	sawEvent, sawLiveEvent bool
	// isTrial is set if the watch shows whether watches work. firstEvent is the time of its first event.
	isTrial    bool
	firstEvent time.Time
}

type initialList struct {
	shard      *shardRequest
	release    func() // releases the slot of the limiter
	maxSilence time.Duration
	received   int // the number of events
	// maxWait is the accepted wait for the server after another event than an addition; zero before.
	maxWait time.Duration
}

// isOverdue reports whether the initial events do not end, after an event other than the last one.
func (o *openWatch) isOverdue(event watch.Event) bool {
	list := o.initial
	list.received++
	if event.Type != watch.Added && !isSkipped(event) && list.maxWait == 0 {
		list.maxWait = o.waited + lastEventsTimeout
		o.maxSilence = lastEventsTimeout
	}
	expected := time.Duration(list.received) * timePerInitialEvent
	return list.maxWait > 0 && o.waited > list.maxWait || o.waited > InitialEventsTimeout+expected ||
		o.waited > answerTimeout+expected && o.watches != nil && o.watches.hasStalledSince(time.Time{})
}

// WatchInline requests a watch and calls take for its events, on the caller's goroutine.
func (l *listWatch) WatchInline(
	ctx context.Context, options *metav1.ListOptions, take func(watch.Event) bool,
) error {
	o, err := l.openWatch(ctx, options)
	if err != nil {
		return err
	}
	defer l.endWatch(o)
	l.forward(o, take)
	return nil
}

func (l *listWatch) openWatch(ctx context.Context, options *metav1.ListOptions) (*openWatch, error) {
	if sendsInitialEvents(options) {
		return l.openWatchList(ctx, options)
	}
	return l.openWithRetry(ctx, options)
}

// openWithRetry requests a watch until the server accepts it, or refuses it permanently.
func (l *listWatch) openWithRetry(ctx context.Context, options *metav1.ListOptions) (*openWatch, error) {
	l.Tweak(options)
	l.Selection.prepareWatch(options)
	if l.NoBookmarks {
		options.AllowWatchBookmarks = false
	}
	timeout := options.TimeoutSeconds
	for {
		if l.pacer.polls() {
			return nil, l.awaitPoll(ctx)
		}
		if err := l.pacer.awaitWatch(ctx); err != nil {
			return nil, err
		}
		isTrial := l.pacer.isTrial()
		options.TimeoutSeconds = trialTimeout(timeout, isTrial)
		o, err := l.open(ctx, VerbWatch, options)
		o.isTrial = isTrial
		if err == errNoAnswer && l.isHeldBack(ctx) {
			o.end()
			return nil, errPollDue
		}
		again := o.retriesWatch(err)
		l.record(requestOutcome{verb: VerbWatch, err: err, retryAfter: o.retryAfter, callerRetries: again})
		if err == nil {
			o.maxSilence = l.pacer.maxSilence(o.attempt, options.TimeoutSeconds)
			return o, nil
		}
		o.end()
		if !again || ctx.Err() != nil {
			return nil, err
		}
	}
}

// openWatchList requests a watch that begins with a list. It holds a slot of the limiter during the list.
func (l *listWatch) openWatchList(ctx context.Context, options *metav1.ListOptions) (*openWatch, error) {
	if l.NoBookmarks {
		return nil, errStalled
	}
	if l.pacer.mustList() {
		l.remarkStall()
		return nil, errStalled
	}
	l.Tweak(options)
	shard := l.Selection.prepareList(options)
	if _, err := l.pacer.awaitList(ctx); err != nil {
		return nil, err
	}
	waited := time.Now()
	release, err := l.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if l.pacer.watches.hasStalledSince(waited) {
		release()
		l.stall()
		return nil, errStalled
	}
	l.continuity.BeforeList(options)
	o, err := l.open(ctx, VerbWatchList, options)
	if err != nil {
		release()
		o.end()
		if err == errNoAnswer {
			l.stall()
			return nil, errStalled
		}
		l.record(requestOutcome{verb: VerbWatchList, err: err, retryAfter: o.retryAfter})
		return nil, err
	}
	l.record(requestOutcome{verb: VerbWatchList})
	silence := l.pacer.maxSilence(o.attempt, options.TimeoutSeconds)
	o.initial = &initialList{shard: shard, release: release, maxSilence: silence}
	o.maxSilence = InitialEventsTimeout
	return o, nil
}

// open requests a watch. The caller ends the attempt when the watch has ended or failed.
func (l *listWatch) open(ctx context.Context, verb Verb, options *metav1.ListOptions) (*openWatch, error) {
	l.reports.RequestStarted(verb)
	o := &openWatch{verb: verb, began: time.Now()}
	o.ctx, o.attempt = l.attempt(ctx, verb)
	var err error
	if verb == VerbWatchList {
		o.lastData.Store(time.Now().UnixNano())
		o.watches = l.pacer.watches
		o.watches.opened(o.attempt)
	}
	if verb == VerbWatch {
		err = l.continuity.BeforeWatch(o.ctx, options)
	}
	if err == nil {
		o.events, err = l.resource.Events(o.ctx, *options)
	}
	if failure := o.resultError(o.ctx, err); failure != nil {
		if err == nil {
			_ = o.Close() // the headers arrived too late
		}
		return o, failure
	}
	l.closeOnEnd(o)
	return o, nil
}

// closeOnEnd arranges that the watch is closed when its context ends, or a restore is detected.
func (l *listWatch) closeOnEnd(o *openWatch) {
	events := o.events // do not capture o, which retains more
	closeEvents := func() { _ = events.Close() }
	o.stop = func() bool { return true }
	if !o.closesWithContext { // otherwise the transport closes the response, which saves memory
		o.stop = context.AfterFunc(o.ctx, closeEvents)
	}
	l.continuity.Opened(closeEvents)
	if o.verb == VerbWatch {
		l.interruption.opened(closeEvents)
	}
}

// endWatch ends a watch. It is one function because each deferred call enlarges the stack of an idle watch.
func (l *listWatch) endWatch(o *openWatch) {
	if o.initial != nil {
		o.initial.release()
	}
	silent := context.Cause(o.ctx) == errNoAnswer
	if silent && o.initial == nil {
		l.continuity.Failed(errNoAnswer)
	}
	l.continuity.Closed()
	if o.verb == VerbWatch {
		l.interruption.closed()
	}
	o.stop()
	_ = o.Close()
	o.end()
}

// forward calls take for each event until the watch ends or take returns false. The last event is an ERROR if
// the watch failed, or was closed immediately without an event.
func (l *listWatch) forward(o *openWatch, take func(watch.Event) bool) {
	for {
		event, waited, err := o.Next()
		if err != nil {
			l.handleReadError(o, err, take)
			return
		}
		if event.Type == watch.Error {
			l.recordErrorEvent(o, event)
			take(event)
			return
		}
		if waited || !o.sawEvent {
			l.recordReceipt(o)
		}
		o.sawLiveEvent = o.initial == nil
		if o.initial != nil && l.stepInitialList(o, event) {
			take(endedEvent("the initial events of a watch-list do not end"))
			return
		}
		if isSkipped(event) {
			continue
		}
		if l.filter != nil && event.Type != watch.Bookmark && !l.filter(event.Object) {
			continue
		}
		if l.Selects != nil && (event.Type == watch.Added || event.Type == watch.Modified) &&
			!l.Selects(event.Object) {
			if o.initial != nil && event.Type == watch.Added {
				continue
			}
			event.Type = watch.Deleted // it may have been selected before
		}
		if !take(event) {
			return
		}
	}
}

// recordReceipt reports contact with the server, after the first event and after each wait. It is separate
// from the functions that wait for events to keep their stack frames small: see docs/design/types.md.
func (l *listWatch) recordReceipt(o *openWatch) {
	if !o.sawEvent {
		o.sawEvent, o.firstEvent = true, time.Now()
		if o.verb == VerbWatch {
			l.record(requestOutcome{verb: VerbWatch, phase: phaseFlowing})
		}
	}
	l.reports.RecordContact(o.initial != nil)
}

// stepInitialList applies an event to the progress of the initial list, and reports whether that has stalled.
func (l *listWatch) stepInitialList(o *openWatch, event watch.Event) (stalled bool) {
	switch {
	case endsInitialEvents(event):
		l.recordInitialList(o)
	case o.isOverdue(event):
		o.initial.release()
		l.stall()
		return true
	}
	return false
}

// stall records that a watch-list has stalled, or would. A list follows.
func (l *listWatch) stall() {
	l.record(requestOutcome{verb: VerbWatchList, phase: phaseStalled})
	l.stalled = true
	l.remarkStall()
}

// remarkStall records in the status why the type is listed.
func (l *listWatch) remarkStall() {
	l.remarkedStall = true
	l.reports.Remark(status.ReasonNone, fmt.Sprintf("lists replace watch-lists, whose initial events do not end, "+
		"and watches end after %v until one receives an event in time: a proxy may buffer responses or drop bookmarks",
		trialDuration))
}

// recordInitialList records that the initial events are complete.
func (l *listWatch) recordInitialList(o *openWatch) {
	list := o.initial
	o.initial = nil
	list.release()
	if o.watches != nil {
		o.watches.ended(o.attempt, true)
		o.watches = nil
	}
	if l.remarkedStall {
		l.remarkedStall = false
		l.reports.Remark(status.ReasonNone, "")
	}
	l.reports.RecordContact(false)
	l.record(requestOutcome{verb: VerbWatchList, phase: phaseListed})
	list.shard.listed(nil)
	now := time.Now()
	l.reports.ListCompleted(now.Sub(o.began))
	o.began = now // of the events after the initial list
	o.maxSilence = list.maxSilence
}

func (l *listWatch) recordErrorEvent(o *openWatch, event watch.Event) {
	err := apierrors.FromObject(event.Object)
	if !o.sawEvent && apierrors.HasStatusCause(err, undecodableCause) {
		l.reports.NoContact()
	}
	l.recordFailure(o, err)
}

// recordFailure records that a watch failed. It ignores the end of the context after the initial events.
func (l *listWatch) recordFailure(o *openWatch, err error) {
	if o.initial != nil {
		o.initial.release()
		l.record(requestOutcome{verb: VerbWatchList, err: err})
		return
	}
	if o.ctx.Err() == nil {
		l.record(requestOutcome{verb: VerbWatch, phase: phaseBroken, err: err})
	}
}

// handleReadError handles an error from reading a watch, which is io.EOF if the server ended the watch. It
// passes an ERROR event to take if a relist is necessary.
func (l *listWatch) handleReadError(o *openWatch, err error, take func(watch.Event) bool) {
	switch {
	case o.initial != nil:
		l.handleIncompleteList(o, err, take)
	case o.ctx.Err() == nil && !endsWatches(err) && !l.continuity.restored() && !l.interruption.pending():
		event := undecodableEvent(err)
		l.recordErrorEvent(o, event)
		take(event)
	default:
		if err := cmp.Or(l.recordServerClose(o), l.judge(o)); err != nil {
			take(endedEvent(err.Error()))
		}
	}
}

// handleIncompleteList handles the end of a watch-list before its initial events are complete. It sends an
// ERROR event, which makes the reflector list. Without the event, the reflector would request watch-lists
// again, which may never be complete.
func (l *listWatch) handleIncompleteList(o *openWatch, err error, take func(watch.Event) bool) {
	event := endedEvent("the watch-list ended before its initial events did")
	switch {
	case context.Cause(o.ctx) == errNoAnswer:
		o.initial.release()
		l.stall()
		event = endedEvent(fmt.Sprintf("the initial events of a watch-list stopped for %v", InitialEventsTimeout))
	case o.ctx.Err() != nil:
		return
	case !endsWatches(err) && !l.continuity.restored():
		event = undecodableEvent(err)
		l.recordErrorEvent(o, event)
	default:
		if isStreamReset(err) {
			silent := time.Since(time.Unix(0, o.lastData.Load())).Round(time.Second)
			event = endedEvent(fmt.Sprintf("the connection was cut after %v without an event", silent))
		}
		if !o.sawEvent {
			l.reports.NoContact()
		}
		l.recordFailure(o, apierrors.FromObject(event.Object))
	}
	take(event)
}

// recordServerClose records that the server has ended a watch. It does nothing if the watch's context has
// ended, or if the watch was interrupted. It reports nothing if Connection.Update has ended the watch. It
// returns an error if the watch was closed immediately without an event, so that a relist is necessary.
func (l *listWatch) recordServerClose(o *openWatch) error {
	if o.ctx.Err() != nil || l.interruption.pending() {
		return nil
	}
	l.continuity.EndedByServer()
	if o.reconnected.Load() {
		return nil
	}
	lasted := time.Since(o.began)
	if lasted < ShortWatch && !o.sawLiveEvent {
		l.reports.NoContact()
	}
	l.record(requestOutcome{verb: o.verb, phase: phaseClosed, openFor: lasted, sawLiveEvent: o.sawLiveEvent})
	if o.sawLiveEvent || lasted >= ShortWatch {
		return nil
	}
	return errWatchClosed
}

func endsWatches(err error) bool {
	return err == io.EOF || err == io.ErrUnexpectedEOF || isConnectionError(err) || isStreamReset(err)
}

// isStreamReset reports whether a server or proxy has reset the HTTP/2 stream of a response, as proxies do
// after an idle time. The types of these errors are internal to net/http.
func isStreamReset(err error) bool { return strings.Contains(err.Error(), "stream error: stream ID ") }

// isConnectionError reports whether err is a connection failure or a timeout, rather than a response.
func isConnectionError(err error) bool {
	return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) || utilnet.IsConnectionReset(err) ||
		utilnet.IsHTTP2ConnectionLost(err)
}

// undecodableEvent returns the ERROR event for a failure to read or decode an event.
func undecodableEvent(err error) watch.Event {
	err = fmt.Errorf("unable to decode an event from the watch stream: %w", err)
	return watch.Event{Type: watch.Error, Object: decodeErrorReporter.AsObject(err)}
}

// decodeErrorReporter creates the object of an ERROR event, as client-go does.
var decodeErrorReporter = apierrors.NewClientErrorReporter(
	http.StatusInternalServerError, http.MethodGet, undecodableCause)

// undecodableCause is the status cause of ERROR events for failures to decode.
const undecodableCause = "ClientWatchDecoding"

// endedEvent returns an ERROR event after which a reflector lists.
func endedEvent(reason string) watch.Event {
	return watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonTimeout,
		Code: http.StatusGatewayTimeout, Message: reason,
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
