package readapi

import "context"

// Scheduler limits the number of requests that evaluate objects at the same time, so that one user cannot
// occupy all CPUs.
type Scheduler interface {
	// Begin blocks until the request, which the context identifies, can evaluate objects. The caller calls
	// end soon, and before it waits for a client or server. It returns the error of the context.
	Begin(ctx context.Context) (end func(), err error)
}

// TimeSlice is the time in which a request evaluates objects. It is not safe for concurrent use.
type TimeSlice struct {
	scheduler Scheduler // nil if there is no limit
	end       func()
	remaining int
}

// workPerSlice is the work of one time slice: a simple selector for 64 objects.
const workPerSlice = contextCheckInterval * workPerObject

// workPerObject is the work of evaluating an object. Each condition of a selector adds 1.
const workPerObject = 16

// NewTimeSlice returns a time slice that has not begun. If scheduler is nil, it never waits.
func NewTimeSlice(scheduler Scheduler) *TimeSlice { return &TimeSlice{scheduler: scheduler} }

// Begin waits for a time slice. It returns the error of the context.
func (t *TimeSlice) Begin(ctx context.Context) (err error) {
	t.remaining = workPerSlice
	if t.scheduler == nil {
		return ctx.Err()
	}
	t.end, err = t.scheduler.Begin(ctx)
	return err
}

// End ends the time slice. It does nothing if it has not begun.
func (t *TimeSlice) End() {
	if t.end != nil {
		t.end()
		t.end = nil
	}
}

// Yield ends the time slice and waits for the next one.
func (t *TimeSlice) Yield(ctx context.Context) error {
	t.End()
	return t.Begin(ctx)
}

// Spend adds work, and reports whether the time slice should end.
func (t *TimeSlice) Spend(work int) (over bool) {
	t.remaining -= work
	return t.remaining <= 0
}
