package health

import (
	"maps"
	"time"

	"github.com/crdcache/crdcache/internal/requests"
)

// parts are what is known of the requests for a type, by what they are for: a namespace, or everything ("").
// A part that is well says nothing about the state, and usually all are but a few: to look at a thousand of
// them for each request of each would take seconds. So those that are not are kept apart.
type parts struct {
	only   *part            // where there is one, as of most types; nil: they are in all
	all    map[string]*part // by name
	unwell map[string]*part // nil: all are well
}

// part is what is known of the requests for one part of a type.
type part struct {
	name        string
	list, watch trouble
	// waitingSince is since when contact with the server has been waited for; zero while none is.
	waitingSince time.Time
	// relist is why the next list will be another one than the first; empty when it won't be.
	relist requests.RelistReason
	// listed is set once a list has been accepted.
	listed bool
	// opened is since when a watch has been open; zero after it has failed, or has been closed at once.
	opened time.Time
	// throttled is set while a 429 that Throttled has counted may still be reported as an answer, too.
	throttled bool
	// unproven is what was known before a watch was accepted that may have brought nothing yet; nil: there is
	// none.
	unproven *unproven
	// incomplete marks the partition of the namespaces that are not known: the others may not be all there
	// are.
	incomplete bool
	// sentBack counts the answers that have the type listed again, as long as no watch brings anything.
	sentBack streak
}

// unproven is what was known before a watch was accepted.
type unproven struct {
	list, watch               trouble
	waitingSince, lastContact time.Time
	// at is when the watch was accepted.
	at time.Time
}

// streak counts what happens again and again.
type streak struct {
	times int
	last  time.Time
}

// streakPause ends a streak. It is longer than the pauses between lists.
const streakPause = 2 * time.Minute

// count returns how often it has happened in a row, now included.
func (s *streak) count(now time.Time) int {
	if now.Sub(s.last) > streakPause {
		s.times = 0
	}
	s.times, s.last = s.times+1, now
	return s.times
}

// well reports whether nothing is wrong with the part and nothing is waited for.
func (p *part) well() bool {
	return p.waitingSince.IsZero() && p.list.reason == requests.ReasonNone &&
		p.watch.reason == requests.ReasonNone
}

// join has the part take over what is wrong with another: of several troubles, the one that has lasted
// longest.
func (p *part) join(other *part) {
	p.listed = p.listed || other.listed
	if p.waitingSince.IsZero() || !other.waitingSince.IsZero() && other.waitingSince.Before(p.waitingSince) {
		p.waitingSince = other.waitingSince
	}
	p.list, p.watch = p.list.worse(other.list), p.watch.worse(other.watch)
}

// set adds a part, or puts it in the place of the one of its name.
func (p *parts) set(one *part) {
	switch {
	case p.all == nil && (p.only == nil || p.only.name == one.name):
		p.only = one
	case p.all == nil:
		p.all = map[string]*part{p.only.name: p.only, one.name: one}
		p.only = nil
	default:
		p.all[one.name] = one
	}
	p.note(one)
}

// miss records why it is not known which namespaces exist.
func (p *parts) miss(namespaces string, t trouble) {
	since := t.since
	if before := p.named(namespaces); before != nil {
		since = before.waitingSince
	}
	p.set(&part{name: namespaces, incomplete: true, waitingSince: since, list: t})
}

// note has to be called for each change of a part that is among all.
func (p *parts) note(one *part) {
	switch {
	case !one.well():
		if p.unwell == nil {
			p.unwell = map[string]*part{}
		}
		p.unwell[one.name] = one
	case p.unwell != nil:
		delete(p.unwell, one.name)
		p.forgetWell()
	}
}

// forgetWell gives up the room of what was unwell: nearly all types stay well for good.
func (p *parts) forgetWell() {
	if len(p.unwell) == 0 {
		p.unwell = nil
	}
}

// any reports whether there is a part.
func (p *parts) any() bool { return p.only != nil || len(p.all) > 0 }

// named returns the part of a name; nil: there is none.
func (p *parts) named(name string) *part {
	if p.only != nil && p.only.name == name {
		return p.only
	}
	return p.all[name]
}

// has reports whether a part is the one of its name.
func (p *parts) has(one *part) bool { return p.named(one.name) == one }

// keep removes all parts but those of these names.
func (p *parts) keep(names map[string]bool) {
	other := func(name string, _ *part) bool { return !names[name] }
	if p.only != nil && !names[p.only.name] {
		p.only = nil
	}
	maps.DeleteFunc(p.all, other)
	maps.DeleteFunc(p.unwell, other)
	p.forgetWell()
}
