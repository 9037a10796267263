package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// partitionRecords has one record for each partition of a type. The name of a partition is its namespace, or
// "" if it has all objects. Only partitions with problems affect the state. They are usually few and stored
// separately, because visiting a thousand partitions for each request of each would take seconds. Both lists
// are sorted by name.
type partitionRecords struct{ all, withProblems []*partitionRecord }

type partitionRecord struct {
	name string
	requestProblems
	// waitingSince is the time since which contact with the server is awaited, or zero if it is not.
	waitingSince time.Time
	// relistReason is the reason of the next list if that is a relist, and empty otherwise.
	relistReason status.RelistReason
	// hasListed is set after the first accepted list.
	hasListed bool
	// watchOpenedAt is when the open watch began. It is zero after a watch failed or was closed at once.
	watchOpenedAt time.Time
	// beforeWatch is the record before the last accepted watch. It is nil after an event of the watch.
	beforeWatch *preWatchState
	// incomplete marks the partition that represents unknown namespaces.
	incomplete bool
	// remarks are worth knowing while the informer is synced, the most severe one first.
	remarks []remark
	// relistResponses counts consecutive responses that cause a relist, without a watch event in between.
	relistResponses streak
}

// remark describes a synced partition. It is not a failure.
type remark struct {
	reason  status.Reason
	message string
}

// severity orders the remarks of a partition.
func (m remark) severity() int {
	return slices.Index([]status.Reason{status.ReasonPolled, status.ReasonRepeatedKeys}, m.reason)
}

// isPolled reports whether lists replace the watch of the partition.
func (p *partitionRecord) isPolled() bool {
	return slices.ContainsFunc(p.remarks, func(m remark) bool { return m.reason == status.ReasonPolled })
}

// requestProblems are the problems of a partition's requests.
type requestProblems struct {
	// A problem of a verb lasts until a request of the verb succeeds.
	listProblem, watchProblem problem
	// These concern the factory: types keep their state. Any response ends unreachable, and any response but
	// 401 ends unauthorized. wasDegraded states whether the partition was degraded when they began.
	unreachable, unauthorized problem
	wasDegraded               bool
}

// affectFactory reports whether there is a problem that concerns the factory.
func (p *requestProblems) affectFactory() bool {
	return p.unreachable.reason != status.ReasonNone || p.unauthorized.reason != status.ReasonNone
}

// problemOf returns the problem of lists or of watches.
func (p *requestProblems) problemOf(verb requests.Verb) *problem {
	if verb.Watches() {
		return &p.watchProblem
	}
	return &p.listProblem
}

// fail records a failure, and returns its problem. degraded states whether the partition was degraded before:
// a failure never improves the state, whatever its reason is. After a failed watch-list, which the reflector
// retries, no list will follow to clear the problem of lists.
func (p *requestProblems) fail(verb requests.Verb, reason status.Reason, err error, now time.Time,
	degraded bool) *problem {
	if verb == requests.VerbWatchList {
		p.listProblem = problem{}
	}
	t := p.problemOf(verb)
	switch reason {
	case status.ReasonUnreachable:
		t = &p.unreachable
	case status.ReasonUnauthorized:
		t, p.unreachable = &p.unauthorized, problem{}
	default:
		p.unreachable, p.unauthorized = problem{}, problem{}
	}
	if t.reason == status.ReasonNone {
		t.since = now
	}
	if t.reason != reason {
		t.repeats = 0
	}
	t.failures++
	t.repeats++
	t.reason, t.err, t.degraded = reason, err, t.degraded || degraded
	p.wasDegraded = degraded
	return t
}

// preWatchState is the record before a watch was accepted.
type preWatchState struct {
	requestProblems
	waitingSince, lastContact time.Time
	// savedAt is the time when the watch was accepted.
	savedAt time.Time
}

// streak counts repeated events.
type streak struct {
	length int
	last   time.Time
}

// streakPause ends a streak. It is longer than the pauses between lists.
const streakPause = 2 * time.Minute

// addEvent counts an event, and returns the length of the streak.
func (s *streak) addEvent(now time.Time) int {
	if now.Sub(s.last) > streakPause {
		s.length = 0
	}
	s.length, s.last = s.length+1, now
	return s.length
}

// isHealthy reports whether the partition has no problem and does not wait for the server.
func (p *partitionRecord) isHealthy() bool {
	return p.waitingSince.IsZero() && p.listProblem.reason == status.ReasonNone &&
		p.watchProblem.reason == status.ReasonNone && !p.affectFactory()
}

// set adds a partition, or replaces the one with its name.
func (p *partitionRecords) set(partition *partitionRecord) {
	p.all = withPartition(p.all, partition)
	p.update(partition)
}

// findPartition returns the position of a name in a sorted list, and whether the list has the name.
func findPartition(sorted []*partitionRecord, name string) (at int, found bool) {
	return slices.BinarySearchFunc(sorted, name, func(p *partitionRecord, name string) int {
		return strings.Compare(p.name, name)
	})
}

// withPartition adds a partition to a sorted list, or replaces the one with its name.
func withPartition(sorted []*partitionRecord, p *partitionRecord) []*partitionRecord {
	at, found := findPartition(sorted, p.name)
	if found {
		sorted[at] = p
		return sorted
	}
	return slices.Insert(sorted, at, p)
}

// recordUnknownNamespaces records why the list of namespaces is unknown.
func (f *observations) recordUnknownNamespaces(namespaces string, reason status.Reason, err error,
	now time.Time) {
	p := cmp.Or(f.partitions.get(namespaces),
		&partitionRecord{name: namespaces, incomplete: true, waitingSince: now})
	p.fail(requests.VerbList, reason, err, now, f.degrades(p, now))
	f.partitions.set(p)
}

// update must be called after each change of a partition.
func (p *partitionRecords) update(partition *partitionRecord) {
	if !partition.isHealthy() || len(partition.remarks) > 0 {
		p.withProblems = withPartition(p.withProblems, partition)
	} else if at, found := findPartition(p.withProblems, partition.name); found {
		p.withProblems = slices.Delete(p.withProblems, at, at+1)
	}
}

// get returns the partition with a name, or nil.
func (p *partitionRecords) get(name string) *partitionRecord {
	if at, found := findPartition(p.all, name); found {
		return p.all[at]
	}
	return nil
}

// retainOnly removes all partitions except the named ones.
func (p *partitionRecords) retainOnly(names map[string]bool) {
	other := func(p *partitionRecord) bool { return !names[p.name] }
	p.all = slices.DeleteFunc(p.all, other)
	p.withProblems = slices.DeleteFunc(p.withProblems, other)
}
