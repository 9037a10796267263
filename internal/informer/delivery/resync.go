package delivery

import (
	"time"

	"k8s.io/klog/v2"
)

// minResyncPeriod is the shortest resync period of a handler.
const minResyncPeriod = time.Second

// ResyncSchedule has the time between two checks for handlers that are due for a resync.
type ResyncSchedule struct {
	// Period is the check period. Zero means that there are no resyncs.
	Period time.Duration
	// changed, if not nil, is closed when Period changes.
	changed chan struct{}
}

// Changed returns a channel that is closed when Period changes; nil without resyncs, which never begin.
func (s *ResyncSchedule) Changed() <-chan struct{} {
	if s.changed == nil && s.Period > 0 {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// planResyncs sets the resync period of a new handler. A handler that is added before the start, or that has
// moved from another informer, can shorten the check period.
func (h *Handlers) planResyncs(r *Registration, isRunning bool) {
	if r.requestedPeriod > 0 && r.requestedPeriod < minResyncPeriod {
		r.logger.Info("Raising the resync period to the minimum", "requested", r.requestedPeriod,
			"minimum", minResyncPeriod)
		r.requestedPeriod = minResyncPeriod
	}
	if check := h.Resyncs.Period; r.requestedPeriod > 0 && r.requestedPeriod < check {
		if !isRunning || r.previous.Load() != nil {
			h.shortenCheckPeriod(r.requestedPeriod)
		} else {
			r.logger.Info("Raising the resync period to the check period of the running informer", "requested",
				r.requestedPeriod, "check", check)
			r.requestedPeriod = check
		}
	}
	r.period = effectivePeriod(r.logger, r.requestedPeriod, h.Resyncs.Period)
}

func (h *Handlers) shortenCheckPeriod(period time.Duration) {
	h.Resyncs.Period = period
	if h.Resyncs.changed != nil {
		close(h.Resyncs.changed)
		h.Resyncs.changed = nil
	}
	for _, r := range h.registered {
		r.period = effectivePeriod(r.logger, r.requestedPeriod, period)
	}
}

// effectivePeriod returns the resync period for a requested period and a check period.
func effectivePeriod(logger klog.Logger, requested, check time.Duration) time.Duration {
	switch {
	case requested == 0:
		return 0
	case check == 0:
		logger.Info("Ignoring the resync period, because this informer does no resyncs",
			"requested", requested)
		return 0
	default:
		return max(requested, check)
	}
}

// SelectDue determines the handlers that are due for a resync, and reports whether there are any.
func (h *Handlers) SelectDue(now time.Time) (due bool) {
	for _, r := range h.registered {
		if r.inResync = r.period > 0 && !now.Before(r.nextResync); r.inResync {
			due, r.nextResync = true, now.Add(r.period)
		}
	}
	return due
}
