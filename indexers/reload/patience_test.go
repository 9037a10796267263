package reload

import (
	"testing"
	"time"
)

// TestPatience verifies that in a busy folder, files are read after twenty quiet periods at most.
func TestPatience(t *testing.T) {
	p := debounce{quiet: 100 * time.Millisecond, retry: time.Second}
	start := time.Now()
	due := start
	for now := start; now.Sub(start) < time.Hour && !due.Before(now); now = now.Add(2 * time.Millisecond) {
		due = now.Add(p.delayAfterEvent(now))
	}
	if late := due.Sub(start); late != 2*time.Second {
		t.Errorf("looked at after %v", late)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if got, ok := p.delayAfterRead(true); !ok || got != want*time.Second {
			t.Errorf("failure %d: %v", i, got)
		}
	}
	if _, ok := p.delayAfterRead(false); ok {
		t.Error("another look is due after one that came out well")
	}
	if got, _ := p.delayAfterRead(true); got != time.Second {
		t.Errorf("the next failure: %v", got)
	}
	if got := p.delayAfterEvent(start.Add(2 * time.Hour)); got != 100*time.Millisecond {
		t.Errorf("the next event: %v", got)
	}
}
