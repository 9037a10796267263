package requests

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Pacer decides when a reflector can send its next request. The pause after a failure depends on its reason.
// It replaces the reflector's backoff, which does not distinguish failures, misses most of them, and cannot
// be interrupted. It is safe for concurrent use.
type Pacer struct {
	facts targetFacts
	retry *RetrySignal
	// outage is shared by the pacers of a Server, watches by the pacers of a connection.
	outage  *sharedOutage
	watches *watchRecord

	mu struct {
		sync.Mutex
		state targetState
		// retryRequested is closed when the signal has been sent since the last request began.
		retryRequested <-chan struct{}
	}
}

// NewPacer returns a pacer whose pauses retry interrupts. typeKnown states that a source of types reports the
// type as served. newNamespace states that the requests are for a namespace that was just created.
func NewPacer(typeKnown, newNamespace bool, retry *RetrySignal) *Pacer {
	p := &Pacer{facts: targetFacts{typeKnown: typeKnown, newNamespace: newNamespace}, retry: retry,
		outage: &sharedOutage{}, watches: &watchRecord{}}
	p.mu.retryRequested = retry.next()
	return p
}

// record updates the state after an outcome, and returns the outcome's effect.
func (p *Pacer) record(o requestOutcome) (effect outcomeEffect) {
	o.now, o.random = time.Now(), rand.Float64()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.state, effect = p.facts.step(p.mu.state, o)
	if o.provesContact() {
		p.outage.end()
	}
	return effect
}

// headerTimeout returns the time to wait for response headers.
func (p *Pacer) headerTimeout(verb Verb) time.Duration {
	switch {
	case !verb.Watches():
		return listHeaderTimeout
	case verb == VerbWatchList || p.isTrial():
		return InitialEventsTimeout
	}
	return watchHeaderTimeout
}

// maxSilence returns the longest accepted silence of an open watch; zero means no limit.
func (p *Pacer) maxSilence(a *attempt, timeoutSeconds *int64) time.Duration {
	if timeoutSeconds == nil || *timeoutSeconds <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	silence := time.Duration(*timeoutSeconds)*time.Second + silenceGrace
	if a.http1 && !p.mu.state.proxyBuffers {
		silence = min(silence, silenceHTTP1)
	}
	return silence
}

// awaitRound waits until the next round of list and watch can begin. The first round begins immediately.
func (p *Pacer) awaitRound(ctx context.Context) error {
	p.mu.Lock()
	next, due := p.mu.state.nextRound(time.Now(), rand.Float64())
	p.mu.state = next
	p.mu.Unlock()
	return p.sleep(ctx, due)
}

// awaitList waits like awaitRound, except, as it reports, after a failed watch-list or awaitPoll.
func (p *Pacer) awaitList(ctx context.Context) (fallback bool, err error) {
	p.mu.Lock()
	fallback = p.mu.state.listIsFallback
	p.mu.state.listIsFallback = false
	p.mu.Unlock()
	if fallback {
		return true, nil
	}
	return false, p.awaitRound(ctx)
}

// awaitWatch waits until a watch may be requested again.
func (p *Pacer) awaitWatch(ctx context.Context) error {
	p.mu.Lock()
	due := p.mu.state.pauseEnd
	p.mu.Unlock()
	return p.sleep(ctx, due)
}

// mustList reports whether to list because watch-lists stall, or lists replace watches.
func (p *Pacer) mustList() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.mu.state
	return time.Now().Before(s.listsUntil) || p.pollsLocked() || s.pollCause >= pollHeldBack ||
		p.watches.mustList(s.firstRoundDone)
}

// polls reports whether the type is listed periodically, because watches do not work.
func (p *Pacer) polls() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pollsLocked()
}

func (p *Pacer) pollsLocked() bool {
	return p.facts.listOnly || time.Now().Before(p.mu.state.pollsUntil)
}

// awaitPoll waits until the next list of a type that is polled. Long lists have long pauses.
func (p *Pacer) awaitPoll(ctx context.Context) error {
	p.mu.Lock()
	s, due := &p.mu.state, time.Time{}
	if s.hasListed {
		pause := backoffs[stagePoll].pauseAfter(s.unchangedLists, rand.Float64())
		due = time.Now().Add(max(pause, pausePerListTime*s.listTime))
	}
	s.listIsFallback = true
	p.mu.Unlock()
	return p.sleep(ctx, due)
}

// sleep waits until a time, or for the retry signal, including one sent since the last request began. While
// the server cannot be reached, it waits for its turn, or until the server responds to another type.
func (p *Pacer) sleep(ctx context.Context, until time.Time) error {
	p.mu.Lock()
	retried, isOutage := p.mu.retryRequested, p.mu.state.failures > 0 && p.mu.state.stage == stageConnection
	p.mu.Unlock()
	if d := time.Until(until); d > 0 {
		var outageEnded <-chan struct{} // nil blocks forever
		if isOutage {
			until, outageEnded = p.outage.nextAttempt(until)
		}
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-outageEnded:
			p.mu.Lock()
			p.mu.state.wakeFailures++
			p.mu.Unlock()
		case <-retried:
			p.mu.Lock()
			s := &p.mu.state
			s.reason, s.pauseEnd = status.ReasonNone, time.Time{}
			s.failures, s.rounds, s.wakeFailures = 0, 0, 0
			p.mu.Unlock()
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.retryRequested = p.retry.next()
	return context.Cause(ctx)
}

// RetrySignal interrupts pauses. It is safe for concurrent use.
type RetrySignal struct {
	mu struct {
		sync.Mutex
		sent chan struct{} // closed and replaced by Send
	}
}

// NewRetrySignal returns a signal that has not been sent.
func NewRetrySignal() *RetrySignal {
	r := &RetrySignal{}
	r.mu.sent = make(chan struct{})
	return r
}

// Send interrupts all current pauses.
func (r *RetrySignal) Send() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.mu.sent)
	r.mu.sent = make(chan struct{})
}

// next returns a channel that is closed by the next Send.
func (r *RetrySignal) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.sent
}
