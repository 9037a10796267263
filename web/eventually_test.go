package web

import (
	"testing"
	"time"
)

// eventually polls a condition that has no event.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(patience)
	for !holds() {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatal("timed out")
		}
	}
}
