package informer

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// boundClock is a clock that fires After early when its context ends. The reflector sleeps in After while
// the server refuses connections to an initial watch-list, and could outlive its context by a minute.
type boundClock struct {
	clock.WithTicker
	ctx context.Context
}

func untilDone(ctx context.Context, c clock.WithTicker) boundClock {
	return boundClock{WithTicker: c, ctx: ctx}
}

// After implements clock.Clock.
func (c boundClock) After(d time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 1)
	timer := c.NewTimer(d)
	// Ended by the timer or the context.
	go func() {
		defer timer.Stop()
		select {
		case now := <-timer.C():
			fired <- now
		case <-c.ctx.Done():
			fired <- c.Now()
		}
	}()
	return fired
}
