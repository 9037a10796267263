package discovery

import (
	"math/rand/v2"
	"time"
)

const (
	// followUps is how many rounds follow a changed APIService: the API server updates its discovery
	// documents later than the APIService.
	followUps = 3
	// longestRetry bounds the pause after a round that left something unknown.
	longestRetry = 30 * time.Second
)

// pace computes the pauses between discovery rounds.
type pace struct {
	failed  bool // the last round failed
	retries int  // the rounds in a row whose answer is not final
	follow  int  // the rounds that must still follow a changed APIService
}

// changed notes that an APIService changed: pauses begin short again.
func (p *pace) changed() { p.retries, p.follow = 0, followUps }

// done notes the result of a round that left unknown group versions unknown.
func (p *pace) done(err error, unknown int) {
	p.failed = err != nil
	switch {
	case p.failed || unknown > 0:
		p.retries++
	case p.follow > 0:
		p.follow--
		p.retries++
	default:
		p.retries = 0
	}
}

// pause returns the time until the next round: usual, or less while the last answer is not final.
func (p *pace) pause(usual time.Duration) time.Duration {
	if p.failed {
		usual = longestRetry
	}
	if p.retries > 0 {
		usual = min(usual, longestRetry, time.Second<<min(p.retries-1, 5))
	}
	return jitter(usual, rand.Float64())
}
