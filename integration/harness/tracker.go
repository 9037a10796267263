package harness

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
)

// RunTracker returns a tracker that follows types until the end of the test. What is cleaned up for who
// called it is so before.
func RunTracker(t testing.TB, config *rest.Config) *discovery.Tracker {
	t.Helper()
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }() // ended by cancel
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return tracker
}
