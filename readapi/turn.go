package readapi

import "context"

// Turns limits the number of requests that evaluate objects at the same time, so that one user cannot occupy
// all CPUs.
type Turns interface {
	// Begin blocks until the request, which the context identifies, can evaluate objects. The caller calls
	// end soon, and before it waits for a client or server. The error is that of the context.
	Begin(ctx context.Context) (end func(), err error)
}

// Turn is a request's turn to evaluate objects. It is not safe for concurrent use.
type Turn struct {
	turns Turns // nil: no limit
	end   func()
	left  int
}

// workPerTurn is the work of one turn: a simple selector for 64 objects.
const workPerTurn = checkEvery * workPerObject

// workPerObject is the work of evaluating an object. Each condition of a selector adds 1.
const workPerObject = 16

// NewTurn returns a turn that has not begun. If turns is nil, it never waits.
func NewTurn(turns Turns) *Turn { return &Turn{turns: turns} }

// Begin waits for the turn. It returns the error of the context.
func (t *Turn) Begin(ctx context.Context) (err error) {
	t.left = workPerTurn
	if t.turns == nil {
		return ctx.Err()
	}
	t.end, err = t.turns.Begin(ctx)
	return err
}

// End ends the turn. It does nothing if the turn has not begun.
func (t *Turn) End() {
	if t.end != nil {
		t.end()
		t.end = nil
	}
}

// Pass ends the turn and waits for the next one.
func (t *Turn) Pass(ctx context.Context) error {
	t.End()
	return t.Begin(ctx)
}

// Work adds work, and reports whether the turn should end.
func (t *Turn) Work(work int) (over bool) {
	t.left -= work
	return t.left <= 0
}
