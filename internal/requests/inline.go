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
	events, err := w.open(ctx, options)
	if err != nil {
		return err
	}
	defer w.closing(ctx, events)()
	w.requests.pass(ctx, events, take)
	return nil
}

// closing has the watch end with ctx, and with the detection of a restore. It returns a function that ends it.
func (w *inlineWatcher) closing(ctx context.Context, events *codec.Events) func() {
	stop := events.CloseWith(ctx)
	w.requests.continuity.Opened(func() { _ = events.Close() })
	return func() {
		w.requests.continuity.Closed()
		stop()
		_ = events.Close()
	}
}

// open asks for a watch.
func (w *inlineWatcher) open(ctx context.Context, options *metav1.ListOptions) (*codec.Events, error) {
	l := w.requests
	for {
		if err := l.pacer.awaitInlineWatch(ctx); err != nil {
			return nil, err
		}
		l.reports.RequestStarted(VerbWatch)
		request, asked := l.noting(ctx, VerbWatch)
		l.watchBegan = time.Now() // some proxies hold an answer back until the first event
		var events *codec.Events
		err := l.continuity.Watching(request, options)
		if err == nil {
			events, err = w.resource.Events(request, *options)
		}
		again := err != nil && (repeated(err) || unanswered(err))
		l.record(outcome{verb: VerbWatch, err: err, asked: asked.duration(), again: again})
		if !again || ctx.Err() != nil {
			return events, err
		}
	}
}

// unanswered reports whether a request failed because its connection did.
func unanswered(err error) bool {
	return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// pass passes on events until there are no more, or take returns false. What cannot be read is an ERROR event, the last
// one.
func (l *listWatch) pass(ctx context.Context, events *codec.Events, take func(watch.Event) bool) {
	live := false
	for {
		event, waited, err := events.Next()
		if err != nil {
			if l.ended(ctx, live, err, take) {
				return
			}
			event = unreadable(err)
			l.unproven(live, apierrors.FromObject(event.Object))
		}
		if event.Type == watch.Error {
			l.broke(ctx, apierrors.FromObject(event.Object))
			take(event)
			return
		}
		first := !live
		if first {
			live = true
			l.record(outcome{verb: VerbWatch, phase: flowing})
		}
		if waited || first {
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
func (l *listWatch) ended(ctx context.Context, live bool, err error, take func(watch.Event) bool) bool {
	if ctx.Err() == nil && err != io.EOF && err != io.ErrUnexpectedEOF && !unanswered(err) && !l.continuity.passed() {
		return false
	}
	if err := l.closed(ctx, VerbWatch, l.watchBegan, live); err != nil {
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
