package web

import (
	"slices"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

func TestOpOf(t *testing.T) {
	synced := status.Status{State: status.Synced, Incarnation: 1}
	current := func(state status.State, incarnation int) status.Status {
		return status.Status{State: state, Incarnation: incarnation}
	}
	stale, terminating, failing := synced, synced, synced
	stale.Stale, terminating.Terminating, failing.Reason = true, true, status.ReasonUnreachable
	tests := map[string]struct {
		before, after status.Status
		want          string
	}{
		"there already":   {status.Status{}, synced, ""},
		"begins":          {current(status.Pending, 0), current(status.Syncing, 1), "syncing"},
		"first list":      {current(status.Syncing, 1), synced, "synced"},
		"fails":           {synced, current(status.Degraded, 1), "degraded"},
		"recovers":        {current(status.Degraded, 1), synced, opBack},
		"type goes":       {synced, current(status.Gone, 1), "gone"},
		"type comes back": {current(status.Syncing, 2), current(status.Synced, 2), opBack},
		"stops":           {synced, current(status.Stopped, 1), "stopped"},
		"silence":         {synced, stale, "stale"},
		"sign of life":    {stale, synced, "current"},
		"CRD is deleted":  {synced, terminating, "terminating"},
		"first failure":   {synced, failing, "synced"},
		"no failure":      {failing, synced, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := changeOp(tt.before, tt.after); got != tt.want {
				t.Errorf("operation %q, want %q", got, tt.want)
			}
		})
	}
}

func TestQueueIsBounded(t *testing.T) {
	var q boundedQueue[int]
	for i := range maxQueueLength + 3 {
		q.put(i)
	}
	waiting, skipped := q.take()
	if len(waiting) != maxQueueLength || waiting[0] != 3 || skipped != 3 {
		t.Errorf("take() = %d waiting from %d on, %d skipped; want the latest and 3 skipped", len(waiting),
			waiting[0], skipped)
	}
	if waiting, skipped = q.take(); !slices.Equal(waiting, nil) || skipped != 0 {
		t.Errorf("the second take() = %d waiting, %d skipped, want 0, 0", len(waiting), skipped)
	}
}

// TestStatesWaitApart verifies that changes above the limit do not displace waiting states.
func TestStatesWaitApart(t *testing.T) {
	r := newFeed().NewReader(make(chan struct{}, 1), nil)
	r.putState(stateUpdate{Op: "degraded"})
	for range maxQueueLength + 1 {
		r.changes.put(objectChange{})
	}
	if states, skipped := r.states.take(); len(states) != 1 || skipped != 0 {
		t.Errorf("%d states are waiting and %d were skipped, want 1, 0", len(states), skipped)
	}
	if changes, skipped := r.changes.take(); len(changes) != maxQueueLength || skipped != 1 {
		t.Errorf("%d changes are waiting and %d were skipped, want the maximum, 1", len(changes), skipped)
	}
}
