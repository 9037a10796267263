package startup

import (
	"runtime/debug"
	"testing"
)

// TestRestore verifies that restore changes only the delayed percentage. The test ends before the process has
// 16 MB, so that no collection restores the percentage meanwhile.
func TestRestore(t *testing.T) {
	for _, percent := range []struct{ set, want int }{{delayedPercent, 100}, {50, 50}} {
		debug.SetGCPercent(percent.set)
		restore(100)
		if got := debug.SetGCPercent(100); got != percent.want {
			t.Errorf("the percentage after restore of %d = %d, want %d", percent.set, got, percent.want)
		}
	}
}
