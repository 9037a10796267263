package web

import (
	"slices"
	"testing"
)

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
