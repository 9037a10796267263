package requests

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// listHeaderTimeout is the time to wait for the response headers of a list. API servers abort a list
	// after a minute with an error.
	listHeaderTimeout = 70 * time.Second
	// watchHeaderTimeout is the time to wait for those of a watch. API servers queue it for 15 s at most.
	watchHeaderTimeout = 20 * time.Second
	// silenceGrace is the time from the timeout of a watch, when the server ends it, until it is aborted.
	silenceGrace = 10 * time.Second
	// silenceHTTP1 is the time after which a silent watch over HTTP/1 is aborted. API servers send a bookmark
	// each minute. HTTP/2 needs no such limit, because the transport detects a dead connection with pings.
	// After a watch without any event, a trial shows whether a proxy holds back events. If it does not, the
	// next watch can be silent until its timeout.
	silenceHTTP1 = 90 * time.Second
)

// errNoAnswer is the error of a request without response headers in time, and of a watch silent for too long.
var errNoAnswer = errors.New("the server does not answer")

// attempt is one request. It aborts the request if no response headers arrive in time, and a watch that is
// silent for too long. The transport of a Client records the server's Retry-After in it.
type attempt struct {
	headerTimeout time.Duration
	limiter       *Limiter // learns of responses; may be nil
	cancel        context.CancelCauseFunc
	timer         *time.Timer // nil until the request is sent

	// retryAfter is the value of the Retry-After header; zero if there is none.
	retryAfter time.Duration
	// failure is the transport's error, or nil.
	failure error
	// http1 is set for a response over HTTP/1. closesWithContext is set if its body ends with the context.
	http1, closesWithContext bool
	// clientReads is set if the user's client reads the body, on its own goroutine.
	clientReads      bool
	silenceTimerRuns bool
	// watches has the attempt of a watch-list until its initial events are complete; nil otherwise.
	// lastData is the time of the latest data in Unix nanoseconds.
	watches  *watchRecord
	lastData atomic.Int64
	// reconnected is set if Connection.Update ended the watch.
	reconnected atomic.Bool
	// waited is the total time of waiting for data since the headers, waitingSince the start of this wait.
	waited       time.Duration
	waitingSince time.Time
	// maxSilence is the longest accepted silence of a watch, without the time spent by the reader; zero means
	// no limit.
	maxSilence time.Duration
}

type attemptKey struct{}

// newAttempt returns an attempt and the context of its request. The caller ends it after the response.
func newAttempt(ctx context.Context, headerTimeout time.Duration) (context.Context, *attempt) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{headerTimeout: headerTimeout, cancel: cancel}
	return context.WithValue(ctx, attemptKey{}, a), a
}

// abortAfter aborts the request after a time, unless the timer is stopped before.
func (a *attempt) abortAfter(timeout time.Duration) {
	if a.timer == nil {
		// Do not capture a: the runtime retains a stopped timer and its function for a while.
		cancel := a.cancel
		// stopped by headersArrived, dataArrived or end
		a.timer = time.AfterFunc(timeout, func() { cancel(errNoAnswer) })
		return
	}
	a.timer.Reset(timeout)
}

// headersArrived stops waiting for response headers.
func (a *attempt) headersArrived() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// resultError returns the error of the request. The client's, err, can miss the failure of a watch.
func (a *attempt) resultError(ctx context.Context, err error) error {
	switch {
	case context.Cause(ctx) == errNoAnswer:
		return errNoAnswer
	case err == nil:
		return a.failure
	}
	return err
}

// retriesWatch reports whether a watch that failed with err is requested again without a list.
func (a *attempt) retriesWatch(err error) bool {
	return reflectorRetries(err) || isConnectionFailure(err) || isConnectionError(err) ||
		apierrors.IsMethodNotSupported(err) || err != nil && a.retryAfter > 0
}

// awaitData starts to wait for the server.
func (a *attempt) awaitData() {
	if a.maxSilence > 0 && !a.silenceTimerRuns {
		a.silenceTimerRuns, a.waitingSince = true, time.Now()
		a.abortAfter(a.maxSilence)
	}
}

// dataArrived stops waiting for the server.
func (a *attempt) dataArrived() {
	if a.silenceTimerRuns {
		a.silenceTimerRuns = false
		a.waited += time.Since(a.waitingSince)
		a.timer.Stop()
	}
}

// watchedBody is the response body of an attempt.
type watchedBody struct {
	io.ReadCloser
	attempt *attempt
}

func (b watchedBody) Read(data []byte) (int, error) {
	b.attempt.awaitData()
	n, err := b.ReadCloser.Read(data)
	if n > 0 && b.attempt.limiter != nil {
		b.attempt.limiter.recordContact(true)
	}
	if n > 0 && b.attempt.watches != nil {
		b.attempt.lastData.Store(time.Now().UnixNano())
	}
	if err != nil || len(bytes.TrimLeft(data[:n], " \t\r\n")) > 0 { // white space is not progress
		b.attempt.dataArrived()
	}
	return n, err
}

// end aborts the request and releases the attempt.
func (a *attempt) end() {
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.watches != nil {
		a.watches.ended(a, false)
	}
	a.cancel(nil)
}
