package reload

import (
	"testing"
	"time"
)

// TestDebounce verifies that the files of a busy folder are read after twenty quiet periods at most, and that
// the delay after failures grows.
func TestDebounce(t *testing.T) {
	delays := debounce{quietPeriod: 100 * time.Millisecond, retryInterval: time.Second}
	start := time.Now()
	due := start
	for now := start; now.Sub(start) < time.Hour && !due.Before(now); now = now.Add(2 * time.Millisecond) {
		due = now.Add(delays.delayAfterEvent(now))
	}
	if delay := due.Sub(start); delay != 2*time.Second {
		t.Errorf("read after %v in a busy folder, want 2s", delay)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if got, ok := delays.delayAfterRead(true); !ok || got != want*time.Second {
			t.Errorf("delay after failure %d = %v, %v; want %v", i, got, ok, want*time.Second)
		}
	}
	if _, ok := delays.delayAfterRead(false); ok {
		t.Error("a successful read is followed by another one, want none before the next event")
	}
	if got, _ := delays.delayAfterRead(true); got != time.Second {
		t.Errorf("delay after the first failure since a success = %v, want 1s", got)
	}
	if got := delays.delayAfterEvent(start.Add(2 * time.Hour)); got != 100*time.Millisecond {
		t.Errorf("delay after the next event = %v, want 100ms", got)
	}
}
