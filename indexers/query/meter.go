package query

import (
	"cmp"
	"context"
)

// meter counts the work of one query and asks now and then whether anybody still waits for the answer. A nil
// meter is never full. It is not safe for concurrent use.
type meter struct {
	ctx   context.Context
	yield func(context.Context) error // Options.Yield
	left  int                         // work until ctx is asked again
	err   error                       // of ctx
}

// workBetweenChecks is how many cheap steps, such as a look-up in an index, pass between two looks at the
// context.
const workBetweenChecks = 256

// bodyWork is the work of looking into an object, which may be large: the context is asked each time.
const bodyWork = workBetweenChecks

// work counts steps; it is false once nobody waits any more.
func (m *meter) work(steps int) bool {
	if m == nil {
		return true
	}
	if m.left -= steps; m.left <= 0 && m.err == nil {
		m.left = workBetweenChecks
		if m.yield != nil {
			m.err = m.yield(m.ctx)
		}
		if m.ctx.Err() != nil {
			m.err = context.Cause(m.ctx)
		}
	}
	return m.err == nil
}

// context returns the context of the caller.
func (m *meter) context() context.Context {
	if m == nil {
		return context.Background()
	}
	return m.ctx
}

// failed reports whether an evaluation has ended early with an error, and keeps the reason.
func (m *meter) failed(err error) bool {
	if err != nil && m != nil && m.err == nil {
		m.err = cmp.Or(context.Cause(m.ctx), err)
	}
	return err != nil
}

// ended reports whether nobody waits any more, without counting.
func (m *meter) ended() bool { return m != nil && m.err != nil }
