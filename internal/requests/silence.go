package requests

import (
	"context"
	"errors"
	"time"
)

// pollCause is the reason why lists replace the watches of a target.
type pollCause int

const (
	pollNone        pollCause = iota
	pollUnsupported           // by the server
	// pollHeldBack: watches get no response headers. An answered watch ends it.
	pollHeldBack
	// pollSilent: watches are answered, and get no events before they end. Only an event ends it.
	pollSilent
)

// pollTexts are the explanations for the status.
var pollTexts = [...]string{
	pollUnsupported: "the type cannot be watched",
	pollHeldBack:    "a proxy holds back the responses to watches",
	pollSilent:      "a proxy or the server holds back the events of watches",
}

const (
	// watchRetryPeriod is how long a type whose watches do not work is only listed.
	watchRetryPeriod = 10 * time.Minute
	// pausePerListTime is the pause between two polls for each second that a list takes.
	pausePerListTime = 4
	// trialDuration is the timeout of a watch that shows whether watches work.
	trialDuration = 20 * time.Second
	// minWatchTimeout is the shortest timeout of a watch. An earlier end says nothing about bookmarks.
	minWatchTimeout = 5 * time.Minute
	// maxComparePeriod is the longest silence of watches before a list shows whether they missed events.
	maxComparePeriod = 16 * minWatchTimeout
)

// silenceRecord has the experience with watches that received no events.
type silenceRecord struct {
	// watches is the number of silent watches since the latest event or comparison, total their duration.
	watches int
	total   time.Duration
	// withoutBookmark is the number of consecutive watches without an event in which a bookmark was due.
	withoutBookmark int
	// comparePeriod is the total after which a list follows. compares is set while that list is due.
	comparePeriod time.Duration
	compares      bool
}

// errCompare makes a list show whether watches without events have missed any.
var errCompare = errors.New("watches received no events, and a list shows whether they missed any")

// polling returns the state in which lists replace watches. The next list begins immediately.
func (s targetState) polling(cause pollCause, now time.Time) targetState {
	s.pollCause, s.pollsUntil, s.listIsFallback = cause, now.Add(watchRetryPeriod), true
	return s
}

// watchEnd describes a watch that has ended without an error.
type watchEnd struct {
	// isTrial is set for a trial, suspect if a proxy may hold back the watches of the connection.
	isTrial, suspect bool
	// sawEvent is set if the watch received an event, late if the first one arrived with the watch's end, and
	// silent if the watch was ended because it was silent.
	sawEvent, late, silent bool
	// lacksBookmark is set if a bookmark was due and the server is known to send some.
	lacksBookmark bool
	openFor       time.Duration
	now           time.Time
}

// judged returns the state after the end of a watch. The error is the reason if a list has to follow:
// errPollDue and errNoBookmarks begin to poll, errCompare lists once.
func (s targetState) judged(w watchEnd) (targetState, error) {
	switch {
	case w.sawEvent:
		s.silence = silenceRecord{comparePeriod: s.silence.comparePeriod}
		s.pollCause, s.tried, s.proxyBuffers = pollNone, !w.late, w.late
		return s, nil
	case w.isTrial && s.pollCause == pollSilent:
		return s.polling(pollSilent, w.now), errPollDue
	case w.isTrial:
		s.tried = !w.suspect
	case w.silent:
		s.tried, s.proxyBuffers = s.tried && s.proxyBuffers, true
	}
	s.silence.watches++
	s.silence.total += w.openFor
	if w.lacksBookmark {
		s.silence.withoutBookmark++
	}
	switch {
	case s.silence.withoutBookmark >= 2:
		return s.polling(pollSilent, w.now), errNoBookmarks
	case s.silence.watches >= 2 && s.silence.total >= max(s.silence.comparePeriod, minWatchTimeout):
		s.silence.compares, s.listIsFallback = true, true
		return s, errCompare
	}
	return s, nil
}

// judge records the end of a watch without an error. The error makes a list follow.
func (l *listWatch) judge(o *openWatch) error {
	if l.interruption.pending() || o.reconnected.Load() {
		return nil
	}
	w := watchEnd{isTrial: o.isTrial, suspect: l.pacer.watches.isSuspect(), sawEvent: o.sawLiveEvent,
		silent: context.Cause(o.ctx) == errNoAnswer, openFor: time.Since(o.began), now: time.Now()}
	if !w.silent && o.ctx.Err() != nil {
		return nil
	}
	w.late = w.sawEvent && w.openFor > trialDuration/2 && time.Since(o.firstEvent) < ShortWatch &&
		(w.isTrial || w.suspect)
	w.lacksBookmark = l.sendsBookmarks() && !w.isTrial && (w.silent || w.openFor >= minWatchTimeout)
	if w.sawEvent && !w.late {
		l.pacer.watches.recordHeldBack(false)
	}
	p := l.pacer
	p.mu.Lock()
	next, err := p.mu.state.judged(w)
	p.mu.state = next
	p.mu.Unlock()
	switch err {
	case nil:
	case errCompare:
		l.reports.RelistRequested()
	default:
		l.remarkPolls()
		l.reports.RequestEnded(VerbWatch, err)
	}
	return err
}

// isHeldBack reports whether the server answers lists, but no watch. The type is polled then. A server that
// was suspended during the watch also answers the list after it, but not the one before.
func (l *listWatch) isHeldBack(ctx context.Context) bool {
	timed, cancel := context.WithTimeout(ctx, versionRequestTimeout)
	defer cancel()
	_, err := l.continuity.requestVersion(timed)
	l.pacer.mu.Lock()
	answeredBefore := l.pacer.mu.state.listAnswered
	l.pacer.mu.state.listAnswered = err == nil
	l.pacer.mu.Unlock()
	if err != nil || !answeredBefore {
		return false
	}
	l.pacer.watches.recordHeldBack(true)
	l.record(requestOutcome{verb: VerbWatch, phase: phaseHeldBack})
	l.remarkPolls()
	return true
}

// listStored records whether a list has changed the cache, and its duration. It reports whether silent
// watches have missed the changes. If they have not, the next comparison is later.
func (p *Pacer) listStored(changed bool, took time.Duration) (missed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.mu.state
	s.listTime = took
	s.unchangedLists++
	if changed {
		s.unchangedLists = 0
	}
	if !s.silence.compares {
		return false
	}
	s.silence = silenceRecord{
		comparePeriod: min(2*max(s.silence.comparePeriod, minWatchTimeout), maxComparePeriod)}
	if changed {
		*s = s.polling(pollSilent, time.Now())
	}
	return changed
}

// pollText explains why lists replace watches; it is empty if they do not.
func (p *Pacer) pollText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.facts.listOnly {
		return pollTexts[pollUnsupported]
	}
	return pollTexts[p.mu.state.pollCause]
}

// isTrial reports whether the next watch is short, to show whether watches work.
func (p *Pacer) isTrial() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.mu.state
	return s.pollCause >= pollHeldBack || !s.tried && (s.proxyBuffers || p.watches.isSuspect())
}

// trialTimeout returns the timeout of a watch.
func trialTimeout(timeoutSeconds *int64, isTrial bool) *int64 {
	trial := int64(trialDuration / time.Second)
	if !isTrial || timeoutSeconds != nil && *timeoutSeconds <= trial {
		return timeoutSeconds
	}
	return &trial
}
