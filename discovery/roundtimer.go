package discovery

import (
	"math/rand/v2"
	"time"
)

const (
	// extraRoundsAfterChange is the number of rounds after a changed APIService, because the API server
	// updates its discovery documents later.
	extraRoundsAfterChange = 3
	// maxRetryPause limits the pause after a round that left group versions unknown.
	maxRetryPause = 30 * time.Second
)

// roundTimer computes the pauses between discovery rounds.
type roundTimer struct {
	lastFailed  bool // the last round failed
	retries     int  // number of consecutive rounds without a final result
	extraRounds int  // number of rounds to do after a changed APIService
}

// sourceChanged records that an APIService changed, and resets the pauses.
func (r *roundTimer) sourceChanged() { r.retries, r.extraRounds = 0, extraRoundsAfterChange }

// recordRound records the result of a round; failed is the number of failed group versions.
func (r *roundTimer) recordRound(err error, failed int) {
	r.lastFailed = err != nil
	switch {
	case r.lastFailed || failed > 0:
		r.retries++
	case r.extraRounds > 0:
		r.extraRounds--
		r.retries++
	default:
		r.retries = 0
	}
}

// pause returns the time until the next round: usual, or less if the last result is not final.
func (r *roundTimer) pause(regular time.Duration) time.Duration {
	if r.lastFailed {
		regular = maxRetryPause
	}
	if r.retries > 0 {
		regular = min(regular, maxRetryPause, time.Second<<min(r.retries-1, 5))
	}
	return jitter(regular, rand.Float64())
}
