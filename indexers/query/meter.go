package query

import (
	"cmp"
	"context"
)

// workMeter counts the work of one query and checks its context at intervals. A nil meter never stops a
// query. It is not safe for concurrent use.
type workMeter struct {
	ctx       context.Context
	yield     func(context.Context) error // Options.Yield
	remaining int                         // work until the next check of ctx
	err       error                       // cause of the end of ctx, or the error of yield
}

// workBetweenChecks is the number of cheap steps, such as index lookups, between two checks of the context.
const workBetweenChecks = 256

// bodyWork is the work of reading an object's JSON. It makes every read check the context, because objects
// can be large.
const bodyWork = workBetweenChecks

// spend counts steps. It returns false if the query was cancelled.
func (m *workMeter) spend(steps int) bool {
	if m == nil {
		return true
	}
	if m.remaining -= steps; m.remaining <= 0 && m.err == nil {
		m.remaining = workBetweenChecks
		if m.yield != nil {
			m.err = m.yield(m.ctx)
		}
		if m.ctx.Err() != nil {
			m.err = context.Cause(m.ctx)
		}
	}
	return m.err == nil
}

func (m *workMeter) context() context.Context {
	if m == nil {
		return context.Background()
	}
	return m.ctx
}

// stopOn reports whether err is not nil. It stops the query with the first such error, or with the cause if
// the context has ended.
func (m *workMeter) stopOn(err error) bool {
	if err != nil && m != nil && m.err == nil {
		m.err = cmp.Or(context.Cause(m.ctx), err)
	}
	return err != nil
}

// ended reports whether the query was cancelled, without counting.
func (m *workMeter) ended() bool { return m != nil && m.err != nil }
