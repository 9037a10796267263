package requests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/codec"
)

// inlineResource is a resource whose watches can be read on the goroutine of the caller.
type inlineResource interface {
	resource
	// Events asks for a watch. Its answer is not compressed: a decompressor takes more memory than most types.
	Events(ctx context.Context, options metav1.ListOptions) (*codec.Events, error)
	// ListUnthrottled is List outside the client's rate limit, as watches are.
	ListUnthrottled(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
}

// inlineWatcher is a ListerWatcher that can also watch on the goroutine of its caller; see informer.InlineWatcher.
type inlineWatcher struct {
	*cache.ListWatch
	requests *listWatch
	resource inlineResource
}

// Panicked implements informer.PanicReporter.
func (w *inlineWatcher) Panicked(value any) { w.requests.panicked(value) }

// WatchInline passes the events of a watch to take. It asks again, after a pause, while the server cannot be reached or
// wants to be left alone.
func (w *inlineWatcher) WatchInline(ctx context.Context, options *metav1.ListOptions, take func(watch.Event) bool) error {
	w.requests.tweak(options)
	w.requests.selection.ask(options)
	if w.requests.noBookmarks {
		options.AllowWatchBookmarks = false
	}
	o, err := w.open(ctx, options)
	if err != nil {
		return err
	}
	defer w.requests.finish(o)
	w.requests.pass(o, take)
	silent := context.Cause(o.ctx) == errNoAnswer
	if silent {
		w.requests.continuity.Failed(errNoAnswer)
	}
	w.requests.pacer.watched(silent, o.lively)
	return nil
}

// openWatch is a watch that the server has accepted.
type openWatch struct {
	*codec.Events
	*attempt
	ctx   context.Context // ends when the watch is silent for too long
	stop  func() bool     // calls off that the watch ends with ctx
	began time.Time       // when it was asked for: some proxies hold an answer back until the first event
}

// finish ends the watch. It is one function because each deferred call takes room on the stack of a quiet watch.
func (l *listWatch) finish(o *openWatch) {
	l.continuity.Closed()
	o.stop()
	_ = o.Close() // what was not read is not wanted
	o.end()
}

// open asks for a watch until the server accepts it or refuses it for good.
func (w *inlineWatcher) open(ctx context.Context, options *metav1.ListOptions) (*openWatch, error) {
	l := w.requests
	for {
		if err := l.pacer.awaitInlineWatch(ctx); err != nil {
			return nil, err
		}
		l.reports.RequestStarted(VerbWatch)
		o := &openWatch{began: time.Now()}
		o.ctx, o.attempt = l.attempt(ctx, VerbWatch, *options)
		var events *codec.Events
		err := l.continuity.Watching(o.ctx, options)
		if err == nil {
			events, err = w.resource.Events(o.ctx, *options)
		}
		err = o.result(o.ctx, err)
		again := o.again(err)
		l.record(outcome{verb: VerbWatch, err: err, asked: o.wait, slow: o.slow, again: again})
		switch {
		case err == nil:
			o.Events, o.stop = events, events.CloseWith(o.ctx)
			l.continuity.Opened(func() { _ = events.Close() })
			o.watch(l.pacer.silence(o.attempt, options.TimeoutSeconds))
			return o, nil
		case events != nil:
			_ = events.Close() // headers came too late
		}
		o.end()
		if !again || ctx.Err() != nil {
			return nil, err
		}
	}
}

// unanswered reports whether a request failed because its connection did.
func unanswered(err error) bool {
	return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// pass passes on events until there are no more, or take returns false. What cannot be read is an ERROR event, the last
// one.
func (l *listWatch) pass(o *openWatch, take func(watch.Event) bool) {
	live := false
	for {
		event, waited, err := o.Next()
		if err != nil {
			if l.ended(o, live, err, take) {
				return
			}
			event = unreadable(err)
			l.unproven(live, apierrors.FromObject(event.Object))
		}
		if event.Type == watch.Error {
			l.broke(o.ctx, apierrors.FromObject(event.Object))
			take(event)
			return
		}
		first := !live
		if first {
			live = true
			l.record(outcome{verb: VerbWatch, phase: flowing})
		}
		if waited || first {
			o.came()
			l.reports.Contact(false)
		}
		if isSkipped(event) {
			continue
		}
		if l.keep != nil && event.Type != watch.Bookmark && !l.keep(event.Object) {
			continue
		}
		if !take(event) {
			return
		}
	}
}

// ended reports whether a watch has ended as watches do, with this error. Take is told where that was at once. Functions that
// wait for events do not do this themselves: see docs/design/types.md.
func (l *listWatch) ended(o *openWatch, live bool, err error, take func(watch.Event) bool) bool {
	if o.ctx.Err() == nil && err != io.EOF && err != io.ErrUnexpectedEOF && !unanswered(err) && !l.continuity.passed() {
		return false
	}
	if err := l.closed(o.ctx, VerbWatch, o.began, live); err != nil {
		take(watch.Event{Type: watch.Error, Object: endedStatus(err.Error())})
	}
	return true
}

// unreadable is the event of what cannot be decoded.
func unreadable(err error) watch.Event {
	return watch.Event{Type: watch.Error, Object: undecodable.AsObject(fmt.Errorf("unable to decode an event from the watch stream: %w", err))}
}

// undecodable makes the object of an ERROR event of an error, as client-go does.
var undecodable = apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, undecodableCause)

// undecodableCause marks ERROR events for what could not be decoded.
const undecodableCause = "ClientWatchDecoding"
