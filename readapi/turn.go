package readapi

import "context"

// Turns limits the requests that evaluate objects at the same time, so that one user cannot occupy all
// processors.
type Turns interface {
	// Begin waits for the turn of a request, which the context identifies. The caller evaluates objects, and
	// calls end soon. It waits for no client and no server in between. The error is that of the context.
	Begin(ctx context.Context) (end func(), err error)
}

// Turn is the turn of one request to evaluate objects. It is not safe for concurrent use.
type Turn struct {
	turns Turns // nil: there is no limit
	end   func()
	left  int
}

// workPerTurn is the work of a turn: evaluating a selector against 64 objects, with few conditions.
const workPerTurn = checkEvery * workPerObject

// workPerObject is the work of evaluating a selector without conditions against one object. Each condition
// adds 1.
const workPerObject = 16

// NewTurn returns a turn that has not begun. Without turns it never waits.
func NewTurn(turns Turns) *Turn { return &Turn{turns: turns} }

// Begin waits for the turn. The error is that of the context.
func (t *Turn) Begin(ctx context.Context) (err error) {
	t.left = workPerTurn
	if t.turns == nil {
		return ctx.Err()
	}
	t.end, err = t.turns.Begin(ctx)
	return err
}

// End ends the turn, if it has begun.
func (t *Turn) End() {
	if t.end != nil {
		t.end()
		t.end = nil
	}
}

// Pass lets other requests have their turn, and waits for another one.
func (t *Turn) Pass(ctx context.Context) error {
	t.End()
	return t.Begin(ctx)
}

// Work counts work, and reports whether the turn is over.
func (t *Turn) Work(work int) (over bool) {
	t.left -= work
	return t.left <= 0
}
