package web

import (
	"testing"
	"time"
)

// eventually asks until something holds that has no event to wait for.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(patience)
	for !holds() {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatal("it never came to hold")
		}
	}
}
