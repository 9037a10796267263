package health

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// Reporter records the requests of one partition in one incarnation: a namespace, or everything. A partition
// has at most one request in progress, and one watch. Reports after the end of the incarnation, or after the
// partition was removed, are dropped.
type Reporter struct {
	*Health
	partition *partitionRecord
}

// Reporter returns the Reporter of a partition of an incarnation by name; empty means everything. It replaces
// an earlier Reporter of the same partition.
func (h *Health) Reporter(incarnation int, name string) Reporter {
	p := &partitionRecord{name: name}
	h.update(func(f *observations, s *Status) {
		if f.running && s.Incarnation == incarnation {
			f.partitions.set(p)
		}
	})
	return Reporter{Health: h, partition: p}
}

func (r Reporter) update(change func(*partitionRecord, *Status, time.Time)) {
	r.Health.update(func(f *observations, s *Status) {
		if r.countsLocked() {
			change(r.partition, s, r.now())
			f.partitions.update(r.partition)
		}
	})
}

// countsLocked reports whether the running incarnation has the partition.
func (r Reporter) countsLocked() bool {
	now := &r.mu.observations
	return now.running && now.partitions.get(r.partition.name) == r.partition
}

func (r Reporter) RelistRequested() {
	r.update(func(p *partitionRecord, _ *Status, _ time.Time) {
		p.relistReason = cmp.Or(p.relistReason, status.RelistRequested)
	})
}

// RequestStarted records that a request is about to be sent, and starts to wait for contact. Call it after
// waiting for limits of requests.
func (r Reporter) RequestStarted(verb requests.Verb) {
	r.update(func(p *partitionRecord, _ *Status, now time.Time) {
		r.mu.counts.countRequest(verb)
		if p.waitingSince.IsZero() {
			p.waitingSince = now
		}
	})
}

func (r Reporter) RequestEnded(verb requests.Verb, err error) {
	if errors.Is(err, context.Canceled) {
		return // the informer is being stopped
	}
	reason := requests.ReasonOf(err)
	r.update(func(p *partitionRecord, current *Status, now time.Time) {
		if reason != status.ReasonNone {
			r.mu.counts.countFailure(verb, reason)
		}
		if err == nil {
			r.mu.counts.acceptedRequests++
			p.beforeWatch = nil
			if verb.Watches() {
				p.beforeWatch = &preWatchState{p.requestProblems, p.waitingSince, current.LastContact, now}
			}
			r.acceptLocked(p, verb, now)
		} else {
			r.failLocked(p, verb, reason, err, now)
		}
		if reason == status.ReasonNone {
			current.LastContact = now
		}
		r.member.requestEnded(verb, reason, err)
	})
}

// acceptLocked records that the server accepted a request. An accepted watch resolves all problems; an
// accepted list only problems of lists.
func (r Reporter) acceptLocked(p *partitionRecord, verb requests.Verb, now time.Time) {
	p.waitingSince = time.Time{}
	p.listProblem, p.unreachable, p.unauthorized = problem{}, problem{}, problem{}
	// If watches end soon after they are accepted, an accepted watch does not disprove the problem.
	if verb.Watches() && !requests.EndsWatches(p.watchProblem.reason) &&
		!requests.NeedsEvent(p.watchProblem.reason) {
		p.watchProblem = problem{}
	}
	if verb == requests.VerbWatch || verb == requests.VerbListMore {
		return
	}
	if verb == requests.VerbWatchList {
		p.waitingSince = now // the list is still to come
	}
	if p.relistReason == "" && r.mu.observations.synced && p.hasListed && !p.isPolled() {
		p.relistReason = status.RelistFailed
	}
	if p.relistReason != "" {
		countRelist(&r.mu.status.Relists, p.relistReason)
		r.member.relisted(r.mu.status, p.relistReason)
		p.relistReason = ""
	}
	p.hasListed = true
}

// failLocked records that a request failed or a watch broke off.
func (r Reporter) failLocked(p *partitionRecord, verb requests.Verb, reason status.Reason, err error,
	now time.Time) {
	if reason == status.ReasonNone {
		p.relistReason = requests.RelistReasonOf(err)
		if p.relistResponses.addEvent(now) < MinFailuresForDegraded {
			p.waitingSince = time.Time{} // the response is part of the protocol, and therefore contact
			return
		}
		reason = status.ReasonRequestFailed // the response was repeated without progress
	}
	if (p.relistReason == "" || reason == status.ReasonRestored) && r.mu.observations.synced && p.hasListed {
		p.relistReason = requests.RelistReasonOf(err)
	}
	if verb.Watches() {
		p.watchOpenedAt = time.Time{}
	}
	t := p.fail(verb, reason, err, now, r.mu.observations.degrades(p, now))
	t.failures = max(t.failures, p.relistResponses.length)
	if p.waitingSince.IsZero() && reason != status.ReasonWatchClosed { // a closed watch is contact
		p.waitingSince = now
	}
}

// WatchOpened records that a watch is open and its initial events, if any, are complete. If the previous
// watch did not fail, it has lasted, so that watches are no longer closed immediately.
func (r Reporter) WatchOpened() {
	r.update(func(p *partitionRecord, _ *Status, now time.Time) {
		if requests.EndsWatches(p.watchProblem.reason) && !p.watchOpenedAt.IsZero() {
			p.watchProblem = problem{}
		}
		p.watchOpenedAt = now
	})
}

// NoContact undoes RequestEnded for an accepted watch that ended before an event could be decoded.
func (r Reporter) NoContact() {
	r.update(func(p *partitionRecord, current *Status, _ time.Time) {
		u := p.beforeWatch
		if u == nil {
			return
		}
		p.requestProblems, p.waitingSince, p.beforeWatch = u.requestProblems, u.waitingSince, nil
		if current.LastContact.Equal(u.savedAt) {
			current.LastContact = u.lastContact
		}
	})
}

// Throttled records that the server has said when to repeat the request. It is the reason of the state only
// without another one, and is no failure.
func (r Reporter) Throttled(verb requests.Verb) {
	r.update(func(p *partitionRecord, _ *Status, now time.Time) {
		r.mu.counts.countFailure(verb, status.ReasonThrottled)
		before := *p.problemOf(verb)
		t := p.fail(verb, status.ReasonThrottled, nil, now, r.mu.observations.degrades(p, now))
		t.failures, t.repeats = 0, 0
		if before.reason != status.ReasonNone {
			before.degraded = t.degraded
			*t = before
		}
	})
}

func (r Reporter) ListCompleted(took time.Duration) {
	r.update(func(_ *partitionRecord, current *Status, _ time.Time) {
		current.ListDuration = took
		r.mu.counts.lists++
		r.mu.counts.listTime += took
	})
}

func (r Reporter) Remark(reason status.Reason, message string) {
	r.update(func(p *partitionRecord, _ *Status, _ time.Time) {
		p.remarks = slices.DeleteFunc(p.remarks, func(other remark) bool { return other.reason == reason })
		if message != "" {
			p.remarks = append(p.remarks, remark{reason, message})
			slices.SortFunc(p.remarks, func(a, b remark) int { return b.severity() - a.severity() })
		}
	})
}

// RecordContact records an event or a bookmark of a watch. It is called for every event, and therefore does
// little if there are no problems. initial states that the initial list is not complete.
func (r Reporter) RecordContact(initial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.countsLocked() {
		return
	}
	now := r.now()
	current, p := &r.mu.status, r.partition
	current.LastContact = now
	p.relistResponses.length, p.beforeWatch = 0, nil
	if p.isHealthy() && !initial {
		return
	}
	p.waitingSince = time.Time{}
	p.listProblem, p.unreachable, p.unauthorized = problem{}, problem{}, problem{}
	// initial events come with every list
	if (!requests.EndsWatches(p.watchProblem.reason) || !p.watchOpenedAt.IsZero()) &&
		!(initial && requests.NeedsEvent(p.watchProblem.reason)) {
		p.watchProblem = problem{}
	}
	if initial {
		p.waitingSince = now // the timer is already set to an earlier time
	}
	r.mu.observations.partitions.update(p)
	if current.Reason != status.ReasonNone {
		r.deriveLocked(now)
	}
}
