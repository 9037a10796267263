package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/crdcache/crdcache/internal/requests"
)

// What degrades an informer. Contact is a list, an event, a bookmark or the beginning of a watch, and it is
// lost only while some is waited for: while a request has not been answered with success. A quiet watch owes
// none, however long it lasts: bookmarks come once a minute at best, from some servers never. A dead
// connection is found by the transport, or because the watch is silent for too long. Either ends the watch,
// and the next request fails.
const (
	// FailuresUntilDegraded is how many requests in a row may fail before the first list is there.
	FailuresUntilDegraded = 3
	// SyncPatience is how long contact may be waited for before the first list is there.
	SyncPatience = 10 * time.Second
	// ContactPatience is the same afterwards. It is also how long watches may fail while lists succeed, and
	// how long a type that is known to exist may be answered with 404, because another API server of the
	// cluster lags behind.
	ContactPatience = 30 * time.Second
)

// facts are what a state is derived from.
type facts struct {
	started, stopped bool
	// end is why it has stopped, for a person.
	end string
	// running is true while a generation runs; gone between its end and what comes next.
	running, gone bool
	// reason is why no generation runs, or why the last one ended.
	reason requests.Reason
	// err is the cause of reason; often nil.
	err error
	// synced is true once the first list of the generation has been stored.
	synced bool
	// resuming is true while the cache shows what an earlier process kept.
	resuming bool
	// exists is true when a source of types says that the type is there.
	exists bool
	parts  parts
	// empty says that there is nothing to read: no partition is needed.
	empty bool
}

// covered reports whether everything selected is read. A generation without partitions is not synced, unless
// there is nothing to read: no event could reach its cache.
func (f facts) covered() bool { return f.empty || f.parts.any() }

// trouble is what is wrong with one kind of request; zero while nothing is.
type trouble struct {
	reason   requests.Reason
	failures int // in a row
	alike    int // of these, those since the reason is what it is
	since    time.Time
	err      error
}

// worse returns the trouble that has lasted longer.
func (t trouble) worse(other trouble) trouble {
	if t.reason == requests.ReasonNone || other.reason != requests.ReasonNone && other.since.Before(t.since) {
		return other
	}
	return t
}

// state is the state that facts amount to at a time. It is pure: every rule about states is here.
func (f facts) state(now time.Time) State {
	switch {
	case f.stopped:
		return StateStopped
	case f.gone:
		return StateGone
	case !f.started, !f.running:
		return StatePending
	case f.degraded(now):
		return StateDegraded
	case f.synced && f.covered():
		return StateSynced
	case !f.synced && f.resuming:
		return StateResuming
	default:
		return StateSyncing
	}
}

// degraded returns whether a running generation is to be called degraded.
func (f facts) degraded(now time.Time) bool {
	for _, p := range f.parts.unwell {
		if f.degrades(p, now) {
			return true
		}
	}
	return false
}

// degrades returns whether what one part reports degrades the whole.
func (f facts) degrades(p *part, now time.Time) bool {
	t := p.trouble(now)
	switch {
	case p.incomplete && f.synced:
		return true
	case requests.OfFactory(t.reason):
		return false // conditions of the factory: types keep their state
	case degradesAtOnce(t.reason):
		return true
	case t.reason == requests.ReasonNotFound && !f.exists, p.lasts(now):
		return true
	case t.reason == requests.ReasonNotFound:
		return false // another API server lags behind
	}
	return f.overdue(p, now) || !f.synced && t.failures >= FailuresUntilDegraded
}

// degradesAtOnce returns whether a trouble is not expected to pass by itself.
func degradesAtOnce(reason requests.Reason) bool {
	switch reason {
	case requests.ReasonForbidden, requests.ReasonVerbUnsupported, requests.ReasonConversionFailed,
		requests.ReasonPanicked,
		requests.ReasonRestored:
		return true
	}
	return false
}

// lasts returns whether a trouble of the part has lasted for ContactPatience, whatever succeeds meanwhile.
func (p *part) lasts(now time.Time) bool {
	return slices.ContainsFunc(p.lasting(now),
		func(t trouble) bool { return reached(now, t.since.Add(ContactPatience)) })
}

// lasting returns the troubles that degrade the whole when they last for ContactPatience: that the type is
// not found, and that there is no watch. Lists, which may succeed every minute or fail meanwhile, do not make
// up for one.
func (p *part) lasting(now time.Time) []trouble {
	var lasting []trouble
	list, watch := p.troubles(now)
	if list.reason == requests.ReasonNotFound {
		lasting = append(lasting, list)
	}
	if watch.reason != requests.ReasonNone && !requests.OfFactory(watch.reason) &&
		!degradesAtOnce(watch.reason) {
		lasting = append(lasting, watch)
	}
	return lasting
}

// overdue returns whether a part has waited for contact for too long.
func (f facts) overdue(p *part, now time.Time) bool {
	return !p.waitingSince.IsZero() && reached(now, p.waitingSince.Add(f.patience()))
}

func (f facts) patience() time.Duration {
	if f.synced {
		return ContactPatience
	}
	return SyncPatience
}

// stale returns whether a cache that has been filled may be behind.
func (f facts) stale(now time.Time) bool {
	switch {
	case !f.running:
		return false
	case !f.synced:
		return f.shows()
	case !f.covered():
		return true
	}
	for _, p := range f.parts.unwell {
		if f.degrades(p, now) || f.overdue(p, now) {
			return true
		}
	}
	return false
}

// shows returns whether a running generation shows what an earlier process kept.
func (f facts) shows() bool { return f.running && !f.synced && f.resuming }

// trouble is the trouble that counts: without lists there is nothing to watch.
func (p *part) trouble(now time.Time) trouble {
	list, watch := p.troubles(now)
	if list.reason != requests.ReasonNone {
		return list
	}
	return watch
}

// troubles are those of lists and of watches. What ends watches soon is over when one has lasted.
func (p *part) troubles(now time.Time) (list, watch trouble) {
	if requests.EndsWatches(p.watch.reason) && !p.opened.IsZero() &&
		reached(now, p.opened.Add(requests.ShortWatch)) {
		return p.list, trouble{}
	}
	return p.list, p.watch
}

// of returns the trouble with a kind of request.
func (p *part) of(verb requests.Verb) *trouble {
	if verb.Watches() {
		return &p.watch
	}
	return &p.list
}

// complaint is why things are as they are, when requests are the cause.
type complaint struct {
	trouble
	verb requests.Verb
	part string
}

// complaint returns the one that weighs most of all parts, of several the first by name; its reason is empty
// when there is none.
func (f facts) complaint(now time.Time) complaint {
	var worst complaint
	weight := 0
	for name, p := range f.parts.unwell {
		c := complaint{trouble: p.trouble(now), verb: requests.VerbList, part: name}
		if p.list.reason == requests.ReasonNone {
			c.verb = requests.VerbWatch
		}
		if c.reason == requests.ReasonNone && f.overdue(p, now) {
			c.reason = requests.ReasonNoAnswer
		}
		w := 0
		switch {
		case c.reason == requests.ReasonNone:
		case f.degrades(p, now):
			w = 3
		case requests.OfFactory(c.reason):
			w = 1
		default:
			w = 2
		}
		if w > weight || w == weight && w > 0 && name < worst.part {
			worst, weight = c, w
		}
	}
	return worst
}

// String says what is wrong, in one line.
func (c complaint) String() string {
	text := requests.Explain(c.reason)
	if c.err != nil {
		text = OneLine(c.err.Error())
	}
	switch {
	case c.reason == requests.ReasonForbidden:
		if !strings.Contains(text, string(c.verb)) { // as the server's own words do
			text = string(c.verb) + " denied: " + text
		}
	case c.verb == requests.VerbWatch && c.err != nil && c.reason != requests.ReasonPanicked:
		text = string(c.verb) + ": " + text
	}
	if c.part != "" {
		text = "in " + c.part + ": " + text
	}
	return text
}

// message says in one line what the facts amount to, c being the complaint of the moment.
func (f facts) message(c complaint) string {
	switch {
	case f.stopped:
		return cmp.Or(f.end, "stopped")
	case !f.started:
		return "not started"
	case !f.running:
		if f.err != nil {
			return requests.Explain(f.reason) + ": " + OneLine(f.err.Error())
		}
		return requests.Explain(f.reason)
	case c.reason != requests.ReasonNone:
		return c.String()
	case f.synced && f.covered():
		return ""
	case !f.synced && f.resuming:
		return "showing what an earlier process kept, until that is known to be current"
	default:
		return "waiting for the first list"
	}
}

// deadline is the next time at which the facts come to amount to something else by themselves; zero for
// never.
func (f facts) deadline(now time.Time) time.Time {
	if !f.running || f.stopped {
		return time.Time{}
	}
	var next time.Time
	consider := func(since time.Time, patience time.Duration) {
		at := since.Add(patience)
		if !since.IsZero() && !reached(now, at) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, p := range f.parts.unwell {
		consider(p.waitingSince, f.patience())
		for _, t := range p.lasting(now) {
			consider(t.since, ContactPatience)
		}
		if requests.EndsWatches(p.watch.reason) {
			consider(p.opened, requests.ShortWatch)
		}
	}
	return next
}

// reached returns whether now is at or past a time.
func reached(now, at time.Time) bool { return !now.Before(at) }

// standing is what the requests of one informer say about the factory as a whole.
type standing struct {
	// unreached and refused are why the server could not be reached, and that it did not accept the
	// credentials; zero where neither is so.
	unreached, refused trouble
}

// standing returns what the parts that there are now say, of several the first by name.
func (f facts) standing() standing {
	var s standing
	var unreached, refused string // the parts that say it
	for name, p := range f.parts.unwell {
		if t := p.unreached(); t.err != nil && (s.unreached.err == nil || name < unreached) {
			s.unreached, unreached = t, name
		}
		if t := p.refused(); t.err != nil && (s.refused.err == nil || name < refused) {
			s.refused, refused = t, name
		}
	}
	return s
}

// unreached returns the trouble of a part that has not reached the server several times in a row.
func (p *part) unreached() trouble {
	failures := 0
	for _, t := range []trouble{p.list, p.watch} {
		if t.reason != requests.ReasonUnreachable {
			continue
		}
		if failures += t.alike; failures >= FailuresUntilDegraded {
			return t
		}
	}
	return trouble{}
}

// refused returns the trouble of a part whose credentials the server does not accept.
func (p *part) refused() trouble {
	for _, t := range []trouble{p.list, p.watch} {
		if t.reason == requests.ReasonUnauthorized {
			return t
		}
	}
	return trouble{}
}

// says reports whether a trouble tells a person something else than another one.
func (t trouble) says(other trouble) bool {
	return t.reason != other.reason || t.err != nil && t.err.Error() != other.err.Error()
}
