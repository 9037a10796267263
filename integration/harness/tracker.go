package harness

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
)

// RunTracker returns a tracker that runs until the end of the test. Later cleanups of the caller run before
// it stops.
func RunTracker(t testing.TB, config *rest.Config) *discovery.Tracker {
	t.Helper()
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }() // ends when cancel is called
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return tracker
}
