package informer

import (
	"errors"
	"testing"
)

func TestStep(t *testing.T) {
	for _, tc := range []struct {
		from State
		in   input
		to   State
		err  error
	}{
		{StateNew, inputRun, StateRunning, nil},
		{StateNew, inputForget, StateNew, nil},
		{StateNew, inputStop, StateStopped, nil},
		{StateRunning, inputRun, StateRunning, ErrRunning},
		{StateRunning, inputIncarnationEnd, StateIdle, nil},
		{StateRunning, inputForget, StateRunning, ErrRunning},
		{StateRunning, inputStop, StateStopped, nil},
		{StateIdle, inputRun, StateRunning, nil},
		{StateIdle, inputForget, StateIdle, nil},
		{StateIdle, inputStop, StateStopped, nil},
		{StateStopped, inputRun, StateStopped, ErrStopped},
		{StateStopped, inputIncarnationEnd, StateStopped, nil},
		{StateStopped, inputForget, StateStopped, ErrStopped},
		{StateStopped, inputStop, StateStopped, nil},
	} {
		to, err := nextState(tc.from, tc.in)
		if to != tc.to || !errors.Is(err, tc.err) {
			t.Errorf("step(%v, %d) = %v, %v; want %v, %v", tc.from, tc.in, to, err, tc.to, tc.err)
		}
	}
}

func TestStateNames(t *testing.T) {
	for state, want := range map[State]string{
		StateNew: "Fresh", StateRunning: "Running", StateIdle: "Idle", StateStopped: "Stopped",
		State(9): "Unknown",
	} {
		if got := state.String(); got != want {
			t.Errorf("State(%d) is called %s, want %s", int(state), got, want)
		}
	}
}
