package discovery

import (
	"math/rand/v2"
	"time"
)

const (
	// followUps is the number of rounds after a changed APIService, because the API server updates its
	// discovery documents later.
	followUps = 3
	// longestRetry limits the pause after a round that left group versions unknown.
	longestRetry = 30 * time.Second
)

// roundTimer computes the pauses between discovery rounds.
type roundTimer struct {
	failed      bool // the last round failed
	retries     int  // number of consecutive rounds without a final result
	extraRounds int  // number of rounds to do after a changed APIService
}

// changed records that an APIService changed, and resets the pauses.
func (p *roundTimer) changed() { p.retries, p.extraRounds = 0, followUps }

// recordRound records the result of a round; unknown is the number of unknown group versions.
func (p *roundTimer) recordRound(err error, unknown int) {
	p.failed = err != nil
	switch {
	case p.failed || unknown > 0:
		p.retries++
	case p.extraRounds > 0:
		p.extraRounds--
		p.retries++
	default:
		p.retries = 0
	}
}

// pause returns the time until the next round: usual, or less if the last result is not final.
func (p *roundTimer) pause(usual time.Duration) time.Duration {
	if p.failed {
		usual = longestRetry
	}
	if p.retries > 0 {
		usual = min(usual, longestRetry, time.Second<<min(p.retries-1, 5))
	}
	return jitter(usual, rand.Float64())
}
