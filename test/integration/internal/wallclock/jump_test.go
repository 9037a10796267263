//go:build clockjumps && linux && amd64

package wallclock

import (
	"context"
	"testing"
	"time"
)

// TestSet checks that the wall clock changes and the monotonic clock does not.
func TestSet(t *testing.T) {
	defer Set(0)
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, 0} {
		Set(0)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		Set(ahead)
		<-time.After(time.Millisecond)
		end := time.Now()
		wall, monotonic := end.Round(0).Sub(start.Round(0)), end.Sub(start)
		if jump := (wall - monotonic).Round(time.Minute); jump != ahead {
			t.Errorf("the clock jumped by %v, want %v", jump, ahead)
		}
		if monotonic < 0 || monotonic > 10*time.Minute || ctx.Err() != nil {
			t.Errorf("the monotonic clock advanced by %v, and the context of ten minutes has the error %v",
				monotonic, ctx.Err())
		}
		cancel()
	}
}
