package requests

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPacerPauses checks the pauses after each kind of failure.
func TestPacerPauses(t *testing.T) {
	tests := map[string]struct {
		known       bool
		err         error
		retryAfter  time.Duration
		least, most []time.Duration // of the pauses after the failures
	}{
		"connection refused": {err: errRefused, least: seconds(0.5, 0.5, 0.5),
			most: seconds(1, 1, 1)},
		"internal error": {err: serverError(500), least: seconds(0.8, 1.6),
			most: seconds(1.6, 3.2)},
		"forbidden": {err: serverError(403), least: seconds(0.8, 1.6, 3.2, 6.4),
			most: seconds(1.6, 3.2, 6.4, 12.8)},
		"not found": {err: serverError(404), least: seconds(0.8), most: seconds(1.6)},
		"not found though it is served": {known: true, err: serverError(404),
			least: seconds(0.25, 0.5, 1, 2, 4, 4), most: seconds(0.32, 0.63, 1.25, 2.5, 5, 5)},
		"throttled for a time": {err: serverError(429), retryAfter: 20 * time.Second,
			least: seconds(20, 20), most: seconds(22, 22)},
		"throttled": {err: serverError(429), least: seconds(0.8, 1.6),
			most: seconds(1.6, 3.2)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPacer(tt.known, false, NewRetrySignal())
				if pause := measurePause(t, p); pause != 0 {
					t.Errorf("the first attempt begins after %v, want no pause", pause)
				}
				for i := range tt.least {
					p.recordFailure(tt.err, tt.retryAfter)
					if pause := measurePause(t, p); pause < tt.least[i] || pause > tt.most[i] {
						t.Errorf("pause %d is %v, want %v to %v", i, pause, tt.least[i], tt.most[i])
					}
				}
				p.record(requestOutcome{verb: VerbList})
				p.recordFailure(tt.err, tt.retryAfter)
				if pause := measurePause(t, p); pause > max(tt.most[0], 2*backoffs[stageRelist].first) {
					t.Errorf("the pause after a success is %v, want a short one", pause)
				}
			})
		})
	}
}

func seconds(s ...float64) []time.Duration {
	var all []time.Duration
	for _, s := range s {
		all = append(all, time.Duration(s*float64(time.Second)))
	}
	return all
}

// measurePause returns the pause before the next attempt.
func measurePause(t *testing.T, p *Pacer) time.Duration {
	t.Helper()
	before := time.Now()
	if err := p.awaitRound(t.Context()); err != nil {
		t.Fatal(err)
	}
	return time.Since(before)
}

// recordFailure records the failure of a list.
func (p *Pacer) recordFailure(err error, retryAfter time.Duration) {
	p.record(requestOutcome{verb: VerbList, err: err, retryAfter: retryAfter})
}

func TestRetrySignalEndsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := NewRetrySignal()
		p := NewPacer(false, false, retry)
		measurePause(t, p)
		p.recordFailure(serverError(429), time.Minute)
		time.AfterFunc(time.Second, retry.Send)
		if pause := measurePause(t, p); pause != time.Second {
			t.Errorf("the pause lasts %v, want a second", pause)
		}
		p.recordFailure(serverError(429), time.Minute)
		if pause := measurePause(t, p); pause < 60*time.Second || pause > 75*time.Second {
			t.Errorf("the next pause is %v, want 60s to 75s because earlier failures still count", pause)
		}
		retry.Send() // during a request
		p.recordFailure(serverError(429), time.Minute)
		if pause := measurePause(t, p); pause != 0 {
			t.Errorf("the pause after a signal during a request is %v, want 0", pause)
		}

		why := errors.New("stopped")
		p.recordFailure(serverError(429), time.Minute)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		before := time.Now()
		if err := p.awaitWatch(ctx); !errors.Is(err, why) || time.Since(before) != time.Second {
			t.Errorf("a cancelled awaitWatch() = %v after %v, want the cause after 1s", err,
				time.Since(before))
		}
	})
}
