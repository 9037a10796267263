package requests

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Pacer decides when a reflector may ask the server again: how long after a failure depends on what it was. It
// takes the place of the reflector's own backoff, which knows no reasons, is not told of most failures, and
// cannot be cut short. It is safe for concurrent use.
type Pacer struct {
	// known says that a source of types says that the type is served: a 404 is then that of an API server
	// that lags behind, and will pass.
	known bool
	// late says that the requests are for a namespace that has just come: rights in it may come a moment later.
	late bool
	bell *Bell

	mu struct {
		sync.Mutex
		reason   Reason
		failures int             // in a row, for the same reason
		since    time.Time       // of the first of them
		due      time.Time       // when the pause after the last failure is over
		rounds   int             // of list and watch, without a quiet time between
		round    time.Time       // when the last one began; zero before the first
		rung     <-chan struct{} // closed when the bell has rung since the last request began
	}
}

// quietTime is how long a round must last for the next one not to count as a repetition.
const quietTime = 2 * time.Minute

// NewPacer returns a pacer that bell cuts short. known says that a source of types says that the type is served, late
// that the requests are for a namespace that has just come.
func NewPacer(known, late bool, bell *Bell) *Pacer {
	p := &Pacer{known: known, late: late, bell: bell}
	p.mu.rung = bell.rung()
	return p
}

// awaitRound waits until a round of list and watch may begin. The first may at once.
func (p *Pacer) awaitRound(ctx context.Context) error {
	return p.sleep(ctx, p.planRound(time.Now()))
}

// planRound returns when the next round may begin.
func (p *Pacer) planRound(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.mu.round.IsZero()
	if now.Sub(p.mu.round) > quietTime {
		p.mu.rounds = 0
	}
	due := p.mu.due
	if !first && p.mu.failures == 0 {
		due = now.Add(ordinaryPause.after(p.mu.rounds, rand.Float64()))
		p.mu.rounds++
	}
	p.mu.round = now
	if due.After(now) {
		p.mu.round = due
	}
	return due
}

// awaitWatch waits until a watch may be asked for again.
func (p *Pacer) awaitWatch(ctx context.Context) error {
	p.mu.Lock()
	due := p.mu.due
	p.mu.Unlock()
	return p.sleep(ctx, due)
}

// sleep waits until a time, or until the bell rings. That it has rung since the last request began counts too.
func (p *Pacer) sleep(ctx context.Context, until time.Time) error {
	p.mu.Lock()
	rung := p.mu.rung
	p.mu.Unlock()
	if d := time.Until(until); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-rung:
			p.forget()
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.rung = p.bell.rung()
	return context.Cause(ctx)
}

// failed takes in a failure, after which there is a pause: that which the server asked for, if it did.
func (p *Pacer) failed(err error, asked time.Duration) {
	reason, now := ReasonOf(err), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if reason != p.mu.reason || p.mu.failures == 0 {
		p.mu.reason, p.mu.failures, p.mu.since = reason, 0, now
	}
	d := p.pauses(reason, now.Sub(p.mu.since)).after(p.mu.failures, rand.Float64())
	p.mu.failures++
	if asked > 0 {
		d = asked + time.Duration(rand.Float64()*float64(asked)/4)
	}
	p.mu.due = now.Add(d)
}

// succeeded takes in an answer: what failed before does not count any more.
func (p *Pacer) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.reason, p.mu.failures, p.mu.due = ReasonNone, 0, time.Time{}
}

// forget lets everything begin anew.
func (p *Pacer) forget() {
	p.succeeded()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.rounds = 0
}

// pauses are the pauses after repeated failures: at least the first, twice as long each time, and never longer
// than the last. spread is how much of a pause is left to chance, so that types and programs do not come back
// all at once.
type pauses struct {
	first, last time.Duration
	spread      float64
}

// laggingFor is how long a type that is served may be answered with 404 before that stops being taken for the
// lag of one API server.
const laggingFor = 30 * time.Second

var (
	// ordinaryPause is that of client-go.
	ordinaryPause = pauses{800 * time.Millisecond, 30 * time.Second, 1}
	// A lagging API server catches up soon, or there is something wrong with it.
	laggingPause = pauses{250 * time.Millisecond, 5 * time.Second, 0.25}
	absentPause  = pauses{5 * time.Second, time.Minute, 1}
	// A right is granted by a person.
	forbiddenPause = pauses{time.Minute, 5 * time.Minute, 0.25}
	// A webhook that fails is not helped by being asked more often.
	conversionPause = pauses{time.Second, time.Minute, 1}
)

// after returns the pause after this many earlier failures. chance is random in [0, 1).
func (p pauses) after(earlier int, chance float64) time.Duration {
	d := p.last
	if earlier < 16 {
		d = min(p.first<<earlier, p.last)
	}
	// The longest that chance may add stays within last.
	d = min(d, time.Duration(float64(p.last)/(1+p.spread)))
	return d + time.Duration(float64(d)*p.spread*chance)
}

// pauses returns the pauses for a reason that has been failing for a time.
func (p *Pacer) pauses(reason Reason, failing time.Duration) pauses {
	switch {
	case reason == ReasonNotFound && p.known && failing < laggingFor:
		return laggingPause
	case reason == ReasonNotFound && p.known:
		return absentPause
	case reason == ReasonForbidden && p.late && failing < laggingFor:
		return laggingPause
	case reason == ReasonForbidden:
		return forbiddenPause
	case reason == ReasonConversionFailed:
		return conversionPause
	}
	return ordinaryPause
}

// Bell wakes those who sit out a pause. It is safe for concurrent use.
type Bell struct {
	mu struct {
		sync.Mutex
		rung chan struct{} // closed and replaced by ring
	}
}

// NewBell returns a bell.
func NewBell() *Bell {
	b := &Bell{}
	b.mu.rung = make(chan struct{})
	return b
}

// Ring wakes those who sit out a pause now.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.mu.rung)
	b.mu.rung = make(chan struct{})
}

// rung returns a channel that is closed when the bell rings next.
func (b *Bell) rung() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.rung
}
