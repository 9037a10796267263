package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// Rules for degrading an informer. Contact is a list, an event, a bookmark or the start of a watch. It is
// only missing while it is awaited, until a request succeeds. An idle watch is no problem, because bookmarks
// come once a minute at best, and from some servers never. The transport, or a silence that is too long, ends
// a watch on a dead connection, and the next request fails.
const (
	// MinFailuresForDegraded is the number of failures in a row that degrade an informer before a list.
	MinFailuresForDegraded = 3
	// SyncTimeout is how long contact can be awaited before the first list.
	SyncTimeout = 10 * time.Second
	// ContactTimeout is how long contact can be awaited after the first list, and how long watches can fail
	// while lists succeed. A 404 degrades an informer after this time: until then, one API server may lag.
	ContactTimeout = 30 * time.Second
)

// observations are the input from which a state is derived.
type observations struct {
	started, stopped bool
	// stopReason is the message of Stopped.
	stopReason string
	// running is set while an incarnation runs; typeGone between its end and the next state.
	running, typeGone bool
	// reason is why no incarnation runs, or why the last one ended.
	reason status.Reason
	// err is the cause of reason. Optional.
	err error
	// synced is set after the first list of the incarnation has been stored. suspended is set before that if
	// the objects of an earlier incarnation were not deleted: see status.Status.Suspended.
	synced, suspended bool
	// resuming is set while the cache serves restored objects.
	resuming bool
	// exists is set while a source of types reports the type.
	exists     bool
	partitions partitionRecords
	// selectsNothing is set if no objects are selected, so that there are no partitions.
	selectsNothing bool
}

// hasPartitions reports whether there are partitions, or none are needed because no objects are selected.
// Otherwise the incarnation is not synced, because its cache receives no events.
func (f observations) hasPartitions() bool { return f.selectsNothing || len(f.partitions.all) > 0 }

// problem is the current problem of one kind of request. It is zero if there is none.
type problem struct {
	reason   status.Reason
	failures int // consecutive failures
	repeats  int // consecutive failures with the current reason
	since    time.Time
	err      error
	// degraded states that the partition has been degraded since the last success.
	degraded bool
}

// state derives the state at a time. It is a pure function, and all rules about states are here.
func (f observations) state(now time.Time) State {
	switch {
	case f.stopped:
		return status.Stopped
	case f.typeGone:
		return status.Gone
	case !f.started, !f.running:
		return status.Pending
	case f.degraded(now):
		return status.Degraded
	case f.synced && f.hasPartitions():
		return status.Synced
	case !f.synced && f.resuming:
		return status.Resuming
	default:
		return status.Syncing
	}
}

// degraded reports whether a running incarnation is degraded.
func (f observations) degraded(now time.Time) bool {
	return slices.ContainsFunc(f.partitions.withProblems,
		func(p *partitionRecord) bool { return f.degrades(p, now) })
}

// degrades reports whether a partition degrades the informer.
func (f observations) degrades(p *partitionRecord, now time.Time) bool {
	list, watch := p.problems(now)
	t := p.typeProblem(now)
	switch {
	case p.incomplete && f.synced:
		return true
	case p.affectFactory():
		return p.wasDegraded // a condition of the factory; types keep their state
	case list.degraded, watch.degraded, degradesImmediately(t.reason):
		return true
	case t.reason == status.ReasonNotFound && !f.exists, p.hasLastingProblem(now):
		return true
	case t.reason == status.ReasonNotFound:
		return false // another API server lags behind
	}
	return f.overdue(p, now) || !f.synced && t.failures >= MinFailuresForDegraded
}

// degradesImmediately reports whether a problem is not expected to pass soon.
func degradesImmediately(reason status.Reason) bool {
	switch reason {
	case status.ReasonForbidden, status.ReasonVerbUnsupported, status.ReasonConversionFailed,
		status.ReasonPanicked, status.ReasonNoEvents, status.ReasonRestored:
		return true
	}
	return false
}

// hasLastingProblem reports whether a lasting problem of the partition is older than ContactTimeout.
func (p *partitionRecord) hasLastingProblem(now time.Time) bool {
	return slices.ContainsFunc(p.lastingProblems(now),
		func(t problem) bool { return isDue(now, t.since.Add(ContactTimeout)) })
}

// lastingProblems returns the problems that degrade the informer if they last for ContactTimeout: the type
// is not found, or there is no watch. Successful lists do not compensate for a missing watch.
func (p *partitionRecord) lastingProblems(now time.Time) []problem {
	var lasting []problem
	list, watch := p.problems(now)
	if list.reason == status.ReasonNotFound {
		lasting = append(lasting, list)
	}
	if watch.reason != status.ReasonNone && !degradesImmediately(watch.reason) {
		lasting = append(lasting, watch)
	}
	return lasting
}

// overdue reports whether a partition has waited too long for contact.
func (f observations) overdue(p *partitionRecord, now time.Time) bool {
	return !p.waitingSince.IsZero() && isDue(now, p.waitingSince.Add(f.contactTimeout()))
}

func (f observations) contactTimeout() time.Duration {
	if f.synced {
		return ContactTimeout
	}
	return SyncTimeout
}

// stale reports whether a filled cache may be outdated.
func (f observations) stale(now time.Time) bool {
	switch {
	case !f.running:
		return f.suspended && !f.stopped
	case !f.synced:
		return f.suspended || f.servesRestored()
	case !f.hasPartitions():
		return true
	}
	return slices.ContainsFunc(f.partitions.withProblems,
		func(p *partitionRecord) bool { return f.degrades(p, now) || f.overdue(p, now) })
}

// servesRestored reports whether a running incarnation serves restored objects.
func (f observations) servesRestored() bool { return f.running && !f.synced && f.resuming }

// typeProblem returns the problem of lists, or else that of watches: there is no watch without a list.
func (p *partitionRecord) typeProblem(now time.Time) problem {
	list, watch := p.problems(now)
	if list.reason != status.ReasonNone {
		return list
	}
	return watch
}

// problem returns the problem that explains the state: one that concerns the factory, unless another one has
// degraded the type before.
func (p *partitionRecord) problem(now time.Time) problem {
	t := p.typeProblem(now)
	switch {
	case !p.affectFactory(), p.wasDegraded && t.reason != status.ReasonNone:
		return t
	case p.unreachable.reason != status.ReasonNone:
		return p.unreachable
	}
	return p.unauthorized
}

// problems returns the last problem of lists and that of watches. If watches ended soon after they were
// accepted, a watch that stays open resolves the problem.
func (p *partitionRecord) problems(now time.Time) (list, watch problem) {
	if requests.EndsWatches(p.watchProblem.reason) && !p.watchOpenedAt.IsZero() &&
		isDue(now, p.watchOpenedAt.Add(requests.ShortWatch)) {
		return p.listProblem, problem{}
	}
	return p.listProblem, p.watchProblem
}

// requestProblem is a problem of a request that explains the state.
type requestProblem struct {
	problem
	verb          requests.Verb
	partitionName string
	remarks       []remark // in place of a problem
}

// worstRequestProblem returns the most severe problem of all partitions. Of equally severe ones it returns
// the first by name. If there is none, the reason of the result is empty.
func (f observations) worstRequestProblem(now time.Time) requestProblem {
	var worst requestProblem
	weight := 0
	for _, p := range f.partitions.withProblems {
		c := requestProblem{problem: p.problem(now), verb: requests.VerbList, partitionName: p.name}
		if p.listProblem.reason == status.ReasonNone && p.watchProblem.reason != status.ReasonNone {
			c.verb = requests.VerbWatch
		}
		if c.reason == status.ReasonNone && f.overdue(p, now) {
			c.reason = status.ReasonNoAnswer
		}
		if c.reason == status.ReasonNone && f.synced {
			c.remarks = p.remarks
		}
		if len(c.remarks) > 0 {
			c.reason = c.remarks[0].reason
		}
		w := 0
		switch {
		case len(c.remarks) > 0:
			w = 1
		case c.reason == status.ReasonNone:
		case f.degrades(p, now):
			w = 4
		case requests.AffectsFactory(c.reason):
			w = 2
		default:
			w = 3
		}
		if w > weight {
			worst, weight = c, w
		}
	}
	return worst
}

// String returns a message of one line.
func (c requestProblem) String() string {
	text := requests.Explain(c.reason)
	for k, m := range c.remarks {
		if k > 0 {
			text += "; "
		}
		text += m.message
	}
	if c.err != nil {
		text = OneLine(c.err.Error())
	}
	switch {
	case c.reason == status.ReasonForbidden:
		if !strings.Contains(text, string(c.verb)) { // as in the server's message
			text = string(c.verb) + " denied: " + text
		}
	case c.verb == requests.VerbWatch && c.err != nil && c.reason != status.ReasonPanicked:
		text = string(c.verb) + ": " + text
	}
	if c.partitionName != "" {
		text = "in " + c.partitionName + ": " + text
	}
	return text
}

// message returns a message of one line about the state; c is the current problem.
func (f observations) message(c requestProblem) string {
	switch {
	case f.stopped:
		return cmp.Or(f.stopReason, "stopped")
	case !f.started:
		return "not started"
	case !f.running:
		text := requests.Explain(f.reason)
		if f.err != nil {
			text += ": " + OneLine(f.err.Error())
		}
		if f.suspended {
			text += "; its objects may still exist, and the cache keeps them"
		}
		return text
	case c.reason != status.ReasonNone, len(c.remarks) > 0:
		return c.String()
	case f.synced && f.hasPartitions():
		return ""
	case !f.synced && f.resuming:
		return "serving restored objects until they are confirmed"
	default:
		return "waiting for the first list"
	}
}

// deadline returns the next time at which the state changes without another event; zero means never.
func (f observations) deadline(now time.Time) time.Time {
	if !f.running || f.stopped {
		return time.Time{}
	}
	var next time.Time
	consider := func(since time.Time, patience time.Duration) {
		at := since.Add(patience)
		if !since.IsZero() && !isDue(now, at) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, p := range f.partitions.withProblems {
		consider(p.waitingSince, f.contactTimeout())
		for _, t := range p.lastingProblems(now) {
			consider(t.since, ContactTimeout)
		}
		if requests.EndsWatches(p.watchProblem.reason) {
			consider(p.watchOpenedAt, requests.ShortWatch)
		}
	}
	return next
}

// isDue reports whether now is not before at.
func isDue(now, at time.Time) bool { return !now.Before(at) }

// factoryImpact is the effect of an informer's requests on the factory's conditions.
type factoryImpact struct {
	// unreachable is a problem with the connection, rejected one with the credentials. Zero means no problem.
	unreachable, rejected problem
}

// impact returns the impact of the current partitions. Of several it returns the first by name.
func (f observations) impact() factoryImpact {
	var s factoryImpact
	for _, p := range f.partitions.withProblems {
		if s.unreachable.err == nil && p.unreachable.repeats >= MinFailuresForDegraded {
			s.unreachable = p.unreachable
		}
		if s.rejected.err == nil {
			s.rejected = p.unauthorized
		}
	}
	return s
}

// differs reports whether two problems have different messages.
func (t problem) differs(other problem) bool {
	return t.reason != other.reason || t.err != nil && t.err.Error() != other.err.Error()
}
