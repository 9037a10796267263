package health

import (
	"context"
	"errors"
	"time"

	"github.com/crdcache/crdcache/internal/requests"
)

// Reporter records the requests of one generation for one part of a type: a namespace, or everything. A part
// has one request under way at a time, and one watch. Reports that come when the generation is over, or no
// longer has the part, are dropped.
type Reporter struct {
	*Health
	part *part
}

var _ requests.Reporter = Reporter{}

// Reporter returns the one for a part of a generation, by its name, empty for everything; the one before it
// for the same part records nothing any more. What is wrong with parts that it joins, by their names, is
// wrong with it until its own requests say otherwise.
func (h *Health) Reporter(generation int, name string, joins ...string) Reporter {
	p := &part{name: name}
	h.update(func(f *facts, s *Status) {
		if f.running && s.Generation == generation {
			for _, joined := range joins {
				if other := f.parts.named(joined); other != nil {
					p.join(other)
				}
			}
			f.parts.set(p)
		}
	})
	return Reporter{Health: h, part: p}
}

// update changes what is known of the part.
func (r Reporter) update(change func(*part, *Status, time.Time)) {
	r.Health.update(func(f *facts, s *Status) {
		if r.countsLocked() {
			change(r.part, s, r.now())
			f.parts.note(r.part)
		}
	})
}

// countsLocked reports whether the part is one of those that the running generation has.
func (r Reporter) countsLocked() bool {
	return r.mu.facts.running && r.mu.facts.parts.has(r.part)
}

// RequestStarted records that a request is about to be sent: from now on contact is waited for. What keeps
// requests from being sent, such as a bound on how many there may be, must be waited for before.
func (r Reporter) RequestStarted(verb requests.Verb) {
	r.update(func(p *part, _ *Status, now time.Time) {
		r.mu.counts.sent(verb)
		if p.waitingSince.IsZero() {
			p.waitingSince = now
		}
	})
}

// Answer records the outcome of a request; err is nil when the server accepted it.
func (r Reporter) Answer(verb requests.Verb, err error) {
	if errors.Is(err, context.Canceled) {
		return // ours: the informer is being stopped
	}
	reason := requests.ReasonOf(err)
	r.update(func(p *part, status *Status, now time.Time) {
		if reason != requests.ReasonNone && !(p.throttled && reason == requests.ReasonThrottled) {
			r.mu.counts.failed(verb, reason)
		}
		p.throttled = false
		if err == nil {
			r.mu.counts.answered++
			p.unproven = nil
			if verb.Watches() {
				p.unproven = &unproven{p.list, p.watch, p.waitingSince, status.LastContact, now}
			}
			r.acceptLocked(p, verb, now)
		} else {
			r.failLocked(p, verb, reason, err, now)
		}
		if reason == requests.ReasonNone {
			status.LastContact = now
		}
		r.news.answered(verb, reason, err)
	})
}

// acceptLocked records that the server accepted a request. A watch that was accepted says that all is well; a
// list says that the server can be talked to, and nothing about watches.
func (r Reporter) acceptLocked(p *part, verb requests.Verb, now time.Time) {
	p.waitingSince = time.Time{}
	p.list = trouble{}
	// That a watch is accepted is no news where each ends soon.
	if verb.Watches() && !requests.EndsWatches(p.watch.reason) || requests.OfFactory(p.watch.reason) {
		p.watch = trouble{}
	}
	if verb == requests.VerbWatch || verb == requests.VerbListMore {
		return
	}
	if verb == requests.VerbWatchList {
		p.waitingSince = now // the list is to come yet
	}
	if p.relist == "" && r.mu.facts.synced && p.listed {
		p.relist = requests.RelistFailed
	}
	if p.relist != "" {
		countRelist(&r.mu.status.Relists, p.relist)
		r.news.relisted(r.mu.status, p.relist)
		p.relist = ""
	}
	p.listed = true
}

// failLocked records that a request failed, or that a watch broke off.
func (r Reporter) failLocked(p *part, verb requests.Verb, reason requests.Reason, err error, now time.Time) {
	if reason == requests.ReasonNone {
		p.relist = requests.RelistReasonOf(err)
		if p.sentBack.count(now) < FailuresUntilDegraded {
			p.waitingSince = time.Time{} // an answer that is part of the protocol
			return
		}
		reason = requests.ReasonRequestFailed // the protocol leads nowhere
	}
	if (p.relist == "" || reason == requests.ReasonRestored) && r.mu.facts.synced && p.listed {
		p.relist = requests.RelistReasonOf(err)
	}
	if verb.Watches() {
		p.opened = time.Time{}
	}
	p.outdate(verb)
	p.answered(reason)
	t := p.of(verb)
	if t.reason != reason {
		t.since, t.alike = now, 0
	}
	t.failures = max(t.failures+1, p.sentBack.times)
	t.alike++
	t.reason, t.err = reason, err
	if p.waitingSince.IsZero() && reason != requests.ReasonWatchClosed { // which is contact
		p.waitingSince = now
	}
}

// WatchOpened records that a watch is open, and its initial events, if it has any, are over. If the one
// before it is not known to have failed, it has lasted: watches are not closed at once any more.
func (r Reporter) WatchOpened() {
	r.update(func(p *part, _ *Status, now time.Time) {
		if requests.EndsWatches(p.watch.reason) && !p.opened.IsZero() {
			p.watch = trouble{}
		}
		p.opened = now
	})
}

// NoContact records that the watch that was accepted last ended before an event came that could be decoded:
// accepting it was no contact.
func (r Reporter) NoContact() {
	r.update(func(p *part, status *Status, _ time.Time) {
		u := p.unproven
		if u == nil {
			return
		}
		p.list, p.watch, p.waitingSince, p.unproven = u.list, u.watch, u.waitingSince, nil
		if status.LastContact.Equal(u.at) {
			status.LastContact = u.lastContact
		}
	})
}

// answered forgets what a failure shows not to be so any more: any answer comes from a server that can be
// reached, and any but a 401 from one that accepts the credentials.
func (p *part) answered(reason requests.Reason) {
	if reason == requests.ReasonUnreachable {
		return
	}
	for _, t := range []*trouble{&p.list, &p.watch} {
		if t.reason == requests.ReasonUnreachable || t.reason == requests.ReasonUnauthorized &&
			reason != requests.ReasonUnauthorized {
			*t = trouble{}
		}
	}
}

// outdate forgets what was wrong with lists when a watch-list has failed that the reflector goes on with: it
// does not list meanwhile, so that there would be no other news of it.
func (p *part) outdate(verb requests.Verb) {
	if verb == requests.VerbWatchList {
		p.list = trouble{}
	}
}

// Throttled records that the server answered a request with 429, and that the client is going to repeat it.
func (r Reporter) Throttled(verb requests.Verb) {
	r.update(func(p *part, _ *Status, now time.Time) {
		r.mu.counts.failed(verb, requests.ReasonThrottled)
		p.throttled = true
		p.outdate(verb)
		if t := p.of(verb); t.reason == requests.ReasonNone {
			*t = trouble{reason: requests.ReasonThrottled, since: now}
		}
	})
}

// Listed records how long a list took.
func (r Reporter) Listed(took time.Duration) {
	r.update(func(_ *part, status *Status, _ time.Time) {
		status.ListDuration = took
		r.mu.counts.lists++
		r.mu.counts.listTime += took
	})
}

// Contact records an event or a bookmark of a watch. It is on the path of every event, and therefore does
// next to nothing while all is well. initial says that the watch has still to come to the end of its initial
// list.
func (r Reporter) Contact(initial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.countsLocked() {
		return
	}
	now := r.now()
	status, p := &r.mu.status, r.part
	status.LastContact = now
	p.sentBack.times, p.unproven = 0, nil
	if p.well() && !initial {
		return
	}
	p.waitingSince, p.list = time.Time{}, trouble{}
	if !requests.EndsWatches(p.watch.reason) || !p.opened.IsZero() { // initial events come with every list
		p.watch = trouble{}
	}
	if initial {
		p.waitingSince = now // the timer is set to an earlier time already
	}
	r.mu.facts.parts.note(p)
	if status.Reason != requests.ReasonNone {
		r.deriveLocked(now)
	}
}
