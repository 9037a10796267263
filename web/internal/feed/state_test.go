package feed

import (
	"slices"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer"
)

func TestOpOf(t *testing.T) {
	synced := dynamicinformer.Status{State: dynamicinformer.StateSynced, Generation: 1}
	status := func(state dynamicinformer.State, generation int) dynamicinformer.Status {
		return dynamicinformer.Status{State: state, Generation: generation}
	}
	stale, terminating, failing := synced, synced, synced
	stale.Stale, terminating.Terminating, failing.Reason = true, true, dynamicinformer.ReasonUnreachable
	tests := map[string]struct {
		before, after dynamicinformer.Status
		want          string
	}{
		"there already":   {dynamicinformer.Status{}, synced, ""},
		"begins":          {status(dynamicinformer.StatePending, 0), status(dynamicinformer.StateSyncing, 1), "syncing"},
		"first list":      {status(dynamicinformer.StateSyncing, 1), synced, "synced"},
		"fails":           {synced, status(dynamicinformer.StateDegraded, 1), "degraded"},
		"recovers":        {status(dynamicinformer.StateDegraded, 1), synced, opBack},
		"type goes":       {synced, status(dynamicinformer.StateGone, 1), "gone"},
		"type comes back": {status(dynamicinformer.StateSyncing, 2), status(dynamicinformer.StateSynced, 2), opBack},
		"stops":           {synced, status(dynamicinformer.StateStopped, 1), "stopped"},
		"silence":         {synced, stale, "stale"},
		"sign of life":    {stale, synced, "current"},
		"CRD is deleted":  {synced, terminating, "terminating"},
		"first failure":   {synced, failing, "synced"},
		"no failure":      {failing, synced, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := opOf(tt.before, tt.after); got != tt.want {
				t.Errorf("it is told of as %q, want %q", got, tt.want)
			}
		})
	}
}

func TestQueueIsBounded(t *testing.T) {
	var q queue[int]
	for i := range maxQueue + 3 {
		q.put(i)
	}
	waiting, skipped := q.take()
	if len(waiting) != maxQueue || waiting[0] != 3 || skipped != 3 {
		t.Errorf("%d wait from %d on, and %d were skipped", len(waiting), waiting[0], skipped)
	}
	if waiting, skipped = q.take(); !slices.Equal(waiting, nil) || skipped != 0 {
		t.Errorf("then %d wait, and %d were skipped", len(waiting), skipped)
	}
}

// TestStatesWaitApart puts more changes than there is room for: none of them takes the place of a state.
func TestStatesWaitApart(t *testing.T) {
	r := New().Read(make(chan struct{}, 1), nil)
	r.putState(State{Op: "degraded"})
	for range maxQueue + 1 {
		r.put(Change{})
	}
	if states, skipped := r.TakeStates(); len(states) != 1 || skipped != 0 {
		t.Errorf("%d states wait, and %d were skipped", len(states), skipped)
	}
	if changes, skipped := r.Take(); len(changes) != maxQueue || skipped != 1 {
		t.Errorf("%d changes wait, and %d were skipped", len(changes), skipped)
	}
}
