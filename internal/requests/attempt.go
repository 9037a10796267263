package requests

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

const (
	// listPatience is how long a list may take until its response headers arrive. API servers give up a
	// list after a minute, and report that.
	listPatience = 70 * time.Second
	// mostDoublings bounds how often patience doubles while requests stay without an answer: a server that
	// is slow, or a proxy that holds responses back, answers in the end. After that, a watch may take until
	// its timeout.
	mostDoublings = 2
	// silenceGrace is how long a watch may be silent after its timeout. The server ends a watch at its
	// timeout.
	silenceGrace = 30 * time.Second
	// silenceHTTP1 is how long a watch over HTTP/1 may be silent. API servers send a bookmark each minute.
	// HTTP/2 has pings, by which the transport detects a dead connection. After a watch that was silent
	// from its beginning, the next one may be silent until its timeout: some proxies hold all events back
	// until a watch ends.
	silenceHTTP1 = 90 * time.Second
)

// errNoAnswer is the error of a request for which no response headers arrived, and of a watch that was
// silent for too long.
var errNoAnswer = errors.New("the server does not answer")

// patienceFor returns how long a request may wait for response headers, after some requests in a row
// without any.
func patienceFor(verb Verb, timeoutSeconds *int64, unanswered int) time.Duration {
	if !verb.Watches() {
		return listPatience << min(unanswered, mostDoublings)
	}
	patience := Patience << min(unanswered, mostDoublings)
	if unanswered > mostDoublings {
		patience = max(patience, untilTimeout(timeoutSeconds))
	}
	return patience
}

// untilTimeout returns how long a watch with this timeout may be silent; zero: for any time.
func untilTimeout(timeoutSeconds *int64) time.Duration {
	if timeoutSeconds == nil || *timeoutSeconds <= 0 {
		return 0
	}
	return time.Duration(*timeoutSeconds)*time.Second + silenceGrace
}

// attempt is one request. It ends the request when no response headers arrive in time, and a watch when it
// is silent for too long. The transport of a Client records what the server says about retries.
type attempt struct {
	patience  time.Duration
	throttled func() // called when the server asks for fewer requests
	cancel    context.CancelCauseFunc
	timer     *time.Timer // nil: not sent yet

	// wait is how long the server wants to be left alone; zero: it does not say.
	wait time.Duration
	// failure is why there was no response; nil: there was one.
	failure error
	// http1 says that the response came over HTTP/1, endsAlone that its body ends with the context.
	http1, endsAlone bool
	// foreign reports whether the user's client reads the body, on a goroutine of its own.
	foreign bool
	// waiting reports whether the timer for a silence runs.
	waiting bool
	// slow says that the response headers came late.
	slow bool
	// silence is how long a watch may be silent; zero: for any time. last is when the request was sent, or
	// when the watch or a part of it began. lively says that the first event or bookmark came soon after
	// that.
	silence time.Duration
	last    time.Time
	lively  bool
}

// attemptKey is the context's key for the attempt.
type attemptKey struct{}

// newAttempt returns an attempt and the context of its request. The caller ends it when the response has
// been read.
func newAttempt(ctx context.Context, patience time.Duration, throttled func()) (context.Context, *attempt) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{patience: patience, throttled: throttled, cancel: cancel}
	return context.WithValue(ctx, attemptKey{}, a), a
}

// sent begins to wait for response headers.
func (a *attempt) sent() {
	a.last = time.Now()
	a.endAfter(a.patience)
}

// endAfter ends the request after a time, unless the timer is stopped before.
func (a *attempt) endAfter(patience time.Duration) {
	if a.timer == nil {
		// not a: the runtime keeps a stopped timer for a while, and what its function refers to
		cancel := a.cancel
		a.timer = time.AfterFunc(patience, func() { cancel(errNoAnswer) }) // stopped by answered, came or end
		return
	}
	a.timer.Reset(patience)
}

// answered ends the wait for response headers.
func (a *attempt) answered() {
	if a.timer != nil {
		a.timer.Stop()
		a.slow = time.Since(a.last) >= Patience
	}
}

// result returns the error of the request, given that of the client: a client takes some failures for an
// empty watch.
func (a *attempt) result(ctx context.Context, err error) error {
	switch {
	case context.Cause(ctx) == errNoAnswer:
		return errNoAnswer
	case err == nil:
		return a.failure
	}
	return err
}

// again reports whether a watch that failed with err is asked for again, and nothing is listed before.
func (a *attempt) again(err error) bool {
	return repeated(err) || connectionFailed(err) || unanswered(err) || err != nil && a.wait > 0
}

// watch has the watch end when the server is silent for a time; zero: never. What its reader does meanwhile
// is no silence.
func (a *attempt) watch(silence time.Duration) { a.silence, a.last = silence, time.Now() }

// waits begins to wait for the server.
func (a *attempt) waits() {
	if a.silence > 0 && !a.waiting {
		a.waiting = true
		a.endAfter(a.silence)
	}
}

// came ends the wait.
func (a *attempt) came() {
	if a.waiting {
		a.waiting = false
		a.timer.Stop()
	}
}

// watchedBody is the body of an answer to an attempt.
type watchedBody struct {
	io.ReadCloser
	attempt *attempt
}

// Read implements io.Reader.
func (b watchedBody) Read(data []byte) (int, error) {
	b.attempt.waits()
	n, err := b.ReadCloser.Read(data)
	if err != nil || len(bytes.TrimLeft(data[:n], " \t\r\n")) > 0 { // white space is not progress
		b.attempt.came()
	}
	return n, err
}

// end releases the attempt, and ends the request.
func (a *attempt) end() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.cancel(nil)
}
