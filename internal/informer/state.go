package informer

import (
	"sync"
	"sync/atomic"
)

// State is where an Informer is in its life.
type State int

const (
	// StateFresh: nothing has run yet; transform and watch error handler may still be set.
	StateFresh State = iota
	// StateRunning: a reflector feeds the store.
	StateRunning
	// StateIdle: a generation has ended and the next one has not begun. Handlers still work off their queues.
	StateIdle
	// StateStopped: over for good.
	StateStopped
)

// String names the state for logs and test failures.
func (s State) String() string {
	switch s {
	case StateFresh:
		return "Fresh"
	case StateRunning:
		return "Running"
	case StateIdle:
		return "Idle"
	case StateStopped:
		return "Stopped"
	default:
		return "Unknown"
	}
}

// input is what can happen to an Informer's life.
type input int

const (
	// inputRun asks for a generation to begin.
	inputRun input = iota
	// inputEnd says that the running generation's reflector has returned.
	inputEnd
	// inputForget asks to forget what the past generation showed.
	inputForget
	// inputStop ends everything.
	inputStop
)

// step is the whole life of an Informer as a pure function: the state that follows, or why the input is
// refused (the state is then unchanged).
//
//	Fresh ──run──▶ Running ──end──▶ Idle ──run──▶ Running …
//	  └──stop──┬──────┴───stop──┬─────┘ ↺ forget
//	           ▼                ▼
//	                Stopped
func step(s State, in input) (State, error) {
	if s == StateStopped {
		switch in {
		case inputStop, inputEnd:
			// stopping twice, and a generation that ends because of the stop, are normal
			return StateStopped, nil
		default:
			return s, ErrStopped
		}
	}
	switch in {
	case inputRun:
		if s == StateRunning {
			return s, ErrRunning
		}
		return StateRunning, nil
	case inputEnd:
		return StateIdle, nil
	case inputForget:
		if s == StateRunning {
			return s, ErrRunning
		}
		return s, nil
	default:
		return StateStopped, nil
	}
}

// syncPoint is reached once, when a first full list has been stored (for an informer) or delivered (for a
// handler).
type syncPoint struct {
	once sync.Once
	done chan struct{}
}

func newSyncPoint() *syncPoint { return &syncPoint{done: make(chan struct{})} }

func (p *syncPoint) reach() { p.once.Do(func() { close(p.done) }) }

func (p *syncPoint) reached() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// checker is a cache.DoneChecker over the sync point that counts at the time of asking.
type checker struct {
	name    func() string
	current *atomic.Pointer[syncPoint]
}

// Name implements cache.DoneChecker.
func (c checker) Name() string { return c.name() }

// Done implements cache.DoneChecker.
func (c checker) Done() <-chan struct{} { return c.current.Load().done }
