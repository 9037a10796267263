package health

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

type recordingListener struct{ lines []string }

func (d *recordingListener) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *recordingListener) listener() Listener {
	return Listener{
		StateChanged: func(before, after Status) {
			d.add("%s: %s -> %s %s", after.GVR.Resource, before.State, after.State, after.Reason)
		},
		IncarnationStarted: func(g Incarnation) { d.add("%s: started %d %s", g.GVR.Resource, g.Number, g.UID) },
		IncarnationSynced:  func(g Incarnation) { d.add("%s: synced %d", g.GVR.Resource, g.Number) },
		IncarnationEnded: func(g Incarnation, r status.Reason) {
			d.add("%s: ended %d %s", g.GVR.Resource, g.Number, r)
		},
		Relisted: func(g Incarnation, r status.RelistReason) { d.add("%s: relisted %s", g.GVR.Resource, r) },
		RequestFailed: func(f RequestFailure) {
			d.add("%s: %s failed: %s: %v", f.GVR.Resource, f.Verb, f.Reason, f.Err)
		},
		ConditionChanged: func(before, after Condition) {
			d.add("%s: %s -> %s %s", after.Type, before.Status, after.Status, after.Reason)
		},
	}
}

// aggregatorTest is a test of an Aggregator with a fixed clock.
type aggregatorTest struct {
	*testing.T
	*Aggregator
	clock time.Time
}

func newAggregatorTest(t *testing.T, typesKnown bool) *aggregatorTest {
	e := &aggregatorTest{T: t, clock: time.Unix(1000, 0)}
	e.Aggregator = NewAggregator(typesKnown, func() time.Time { return e.clock })
	return e
}

func (e *aggregatorTest) health(gvr schema.GroupVersionResource, required bool) *Health {
	h := New(gvr, "", func() time.Time { return e.clock })
	h.Require(required)
	e.Join(h)
	return h
}

func (e *aggregatorTest) addListener() (*recordingListener, *ListenerHandle) {
	e.Helper()
	d := &recordingListener{}
	l, err := e.Add(d.listener())
	if err != nil {
		e.Fatal(err)
	}
	return d, l
}

// expect waits until the listener has received all events, and compares them with want.
func (e *aggregatorTest) expect(step string, d *recordingListener, l *ListenerHandle, want ...string) {
	e.Helper()
	if err := l.queue.Drain(e.Context()); err != nil {
		e.Fatal(err)
	}
	if diff := cmp.Diff(want, d.lines); diff != "" {
		e.Errorf("%s (-want +got):\n%s", step, diff)
	}
	d.lines = nil
}

func TestListenerOrder(t *testing.T) {
	e := newAggregatorTest(t, true)
	d, l := e.addListener()
	h := e.health(widgets, false)
	e.expect("at first", d, l,
		"Authenticated:  -> Unknown ", "Reachable:  -> Unknown ", "Ready:  -> True ", "TypesKnown:  -> True ",
		"widgets:  -> Pending ")
	h.Started()
	h.Pending(status.ReasonNotInstalled, nil)
	h.Begin("", "1")
	r := h.Reporter(1, "")
	r.RequestEnded(requests.VerbListMore, serverError(500))
	r.RequestEnded(requests.VerbList, nil)
	h.Synced(1)
	r.RequestEnded(requests.VerbWatch, serverError(410))
	r.RequestEnded(requests.VerbList, nil)
	h.SetGone(status.ReasonNotInstalled)
	h.Begin("", "2")
	h.Stopped("")
	e.expect("a life", d, l,
		"widgets: Pending -> Pending NotInstalled",
		"widgets: Pending -> Syncing ", "widgets: started 1 1",
		"widgets: list failed: RequestFailed: "+
			serverError(500).Error(), "Authenticated: Unknown -> True ", "Reachable: Unknown -> True ",
		"widgets: Syncing -> Syncing RequestFailed",
		"widgets: Syncing -> Syncing ",
		"widgets: Syncing -> Synced ", "widgets: synced 1",
		"widgets: relisted Expired",
		"widgets: Synced -> Gone NotInstalled", "widgets: ended 1 NotInstalled",
		"widgets: Gone -> Syncing ", "widgets: started 2 2",
		"widgets: Syncing -> Stopped ", "widgets: ended 2 ")
}

// TestResumingIncarnation verifies that restored objects belong to the incarnation that serves them. The
// incarnation is synced only when they are confirmed, whether or not requests fail in the meantime.
func TestResumingIncarnation(t *testing.T) {
	e := newAggregatorTest(t, true)
	h := e.health(widgets, false)
	d, l := e.addListener()
	h.Started()
	h.Begin("", "1")
	h.SetResuming(1, true)
	e.expect("restored", d, l,
		"widgets:  -> Pending ", "Authenticated:  -> Unknown ", "Reachable:  -> Unknown ", "Ready:  -> True ",
		"TypesKnown:  -> True ",
		"widgets: Pending -> Syncing ", "widgets: started 1 1", "widgets: Syncing -> Resuming ")
	r := h.Reporter(1, "")
	r.RequestEnded(requests.VerbWatch, serverError(403))
	e.expect("refused", d, l,
		"widgets: watch failed: Forbidden: "+
			serverError(403).Error(), "Authenticated: Unknown -> True ", "Reachable: Unknown -> True ",
		"widgets: Resuming -> Degraded Forbidden")
	h.Synced(1)
	e.expect("confirmed while it is degraded", d, l, "widgets: Degraded -> Degraded Forbidden",
		"widgets: synced 1")
	h.Stopped("")
	e.expect("ended", d, l, "widgets: Degraded -> Stopped ", "widgets: ended 1 ")
}

// TestLateListener verifies that a late listener receives the current state, without stopped informers.
func TestLateListener(t *testing.T) {
	e := newAggregatorTest(t, false)
	synced, denied, over := e.health(widgets, true), e.health(gadgets,
		false), e.health(schema.GroupVersionResource{Resource: "over"}, false)
	over.Stopped("")
	for _, h := range []*Health{synced, denied} {
		h.Started()
		h.Begin("", "7")
		h.Reporter(1, "").RequestEnded(requests.VerbList, nil)
	}
	synced.Synced(1)
	denied.Synced(1)
	denied.Reporter(1, "").RequestEnded(requests.VerbList, serverError(403))
	d, l := e.addListener()
	e.expect("the present", d, l,
		"gadgets:  -> Degraded Forbidden", "gadgets: started 1 7", "gadgets: synced 1",
		"widgets:  -> Synced ", "widgets: started 1 7", "widgets: synced 1",
		"Authenticated:  -> True ", "Reachable:  -> True ", "Ready:  -> False TypesUnknown",
		"TypesKnown:  -> False TypesUnknown")
	e.SetTypesKnown()
	e.expect("and then", d, l, "TypesKnown: False -> True ", "Ready: False -> True ")
}

// TestSlowListener verifies that a slow listener delays neither the informers nor another listener, and its
// depth is reported.
func TestSlowListener(t *testing.T) {
	e := newAggregatorTest(t, true)
	entered, release := make(chan struct{}), make(chan struct{})
	slow, err := e.Add(Listener{StateChanged: func(_, after Status) {
		if after.State == status.Pending {
			close(entered)
			<-release
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	d, quick := e.addListener()
	h := e.health(widgets, false)
	<-entered
	h.Started()
	h.Begin("", "")
	h.Stopped("")
	if err := quick.queue.Drain(t.Context()); err != nil || len(d.lines) != 9 {
		t.Errorf("the quick listener received %q, %v, want 9 events", d.lines, err)
	}
	if got := slow.Depth(); got != 3 {
		t.Errorf("the slow listener's depth is %d, want 3", got)
	}
	close(release)
	if err := e.Drain(t.Context()); err != nil || slow.Depth() != 0 {
		t.Errorf("after Drain, Depth() = %d, %v, want 0", slow.Depth(), err)
	}
}

func TestConditions(t *testing.T) {
	e := newAggregatorTest(t, false)
	one, two := e.health(gadgets, true), e.health(widgets, false)
	for _, h := range []*Health{one, two} {
		h.Started()
		h.Begin("", "")
	}
	first, second := one.Reporter(1, ""), two.Reporter(1, "")
	check := func(step string, want ...string) {
		t.Helper()
		e.mu.Lock()
		defer e.mu.Unlock()
		var got []string
		for _, c := range e.conditionsLocked() {
			line := fmt.Sprintf("%s=%s", c.Type, c.Status)
			if c.Status == metav1.ConditionFalse {
				line += fmt.Sprintf(" %s: %s", c.Reason, c.Message)
			}
			got = append(got, line)
			if c.Since.IsZero() || c.Since.After(e.clock) {
				t.Errorf("%s: condition %s has Since = %v, want a time up to now", step, c.Type, c.Since)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	unknown := "TypesUnknown: waiting to learn which types the server has"
	check("no request ended", "Authenticated=Unknown", "Reachable=Unknown", "Ready=False "+unknown,
		"TypesKnown=False "+unknown)
	e.SetTypesKnown()
	waiting := "Ready=False : gadgets.v1.example.com: Syncing: waiting for the first list"
	check("types known", "Authenticated=Unknown", "Reachable=Unknown", waiting, "TypesKnown=True")

	for range MinFailuresForDegraded {
		second.RequestEnded(requests.VerbList, errRefused)
	}
	refused := "Reachable=False Unreachable: " + errRefused.Error()
	check("one unreachable", "Authenticated=Unknown", refused, waiting, "TypesKnown=True")
	for range MinFailuresForDegraded {
		first.RequestEnded(requests.VerbList, errRefused)
	}
	check("both unreachable", "Authenticated=Unknown", "Reachable=False Unreachable: 2 of 2 types: "+
		errRefused.Error(),
		"Ready=False Unreachable: gadgets.v1.example.com: Syncing (Unreachable): "+
			errRefused.Error(), "TypesKnown=True")
	if s, _ := one.Snapshot(); s.State != status.Syncing {
		t.Errorf("the unreachable type has the status %+v, want Syncing", s)
	}

	first.RequestEnded(requests.VerbList, serverError(401))
	second.RequestEnded(requests.VerbList, serverError(403)) // a response to valid credentials
	denied := serverError(401).Error()
	check("unauthorized", "Authenticated=False Unauthorized: "+denied, "Reachable=True",
		"Ready=False Unauthorized: gadgets.v1.example.com: Syncing (Unauthorized): "+
			denied, "TypesKnown=True")

	first.RequestEnded(requests.VerbList, nil)
	one.Synced(1)
	check("all well", "Authenticated=True", "Reachable=True", "Ready=True", "TypesKnown=True")

	second.RequestEnded(requests.VerbList, serverError(401))
	check("refused", "Authenticated=False Unauthorized: "+denied, "Reachable=True", "Ready=True",
		"TypesKnown=True")
	two.SetGone(status.ReasonNotInstalled)
	check("a Gone type is ignored", "Authenticated=True", "Reachable=True", "Ready=True", "TypesKnown=True")
	second.RequestEnded(requests.VerbList, serverError(401))
	two.Begin("", "")
	second.RequestEnded(requests.VerbList, serverError(401))
	check("a late result of an ended incarnation is ignored", "Authenticated=True", "Reachable=True",
		"Ready=True", "TypesKnown=True")
	a, b := two.Reporter(2, "a"), two.Reporter(2, "b")
	for range MinFailuresForDegraded {
		a.RequestEnded(requests.VerbWatch, errRefused)
	}
	b.RequestEnded(requests.VerbList, serverError(401))
	check("each condition fails in one of two partitions", "Authenticated=False Unauthorized: "+denied,
		"Reachable=False Unreachable: "+errRefused.Error(), "Ready=True", "TypesKnown=True")
	b.RequestEnded(requests.VerbList, serverError(403)) // a response to valid credentials
	two.SetPartitions([]string{"b"}, "", status.ReasonNone, nil)
	check("a removed partition is ignored", "Authenticated=True", "Reachable=True", "Ready=True",
		"TypesKnown=True")
	b.RequestEnded(requests.VerbList, serverError(401))
	two.Stopped("")
	check("a stopped type is ignored", "Authenticated=True", "Reachable=True",
		"Ready=True", "TypesKnown=True")
}

// TestTotals changes informers at random, and compares the conditions with those computed from all members.
func TestTotals(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	e := newAggregatorTest(t, true)
	e.Expect(numbered(0), numbered(7))
	some := func() problem {
		if random.IntN(2) == 0 {
			return problem{}
		}
		return problem{reason: status.ReasonUnauthorized, err: errors.New("refused")}
	}
	var members []*member
	for range 4000 {
		if len(members) < 8 && random.IntN(10) == 0 {
			members = append(members, e.health(numbered(random.IntN(8)), random.IntN(2) == 0).member)
		}
		if len(members) == 0 {
			continue
		}
		at := random.IntN(len(members))
		m := members[at]
		switch random.IntN(4) {
		case 0:
			m.impactChanged(factoryImpact{rejected: some(), unreachable: some()})
		case 1:
			m.requiredChanged(random.IntN(2) == 0)
		default:
			after := *m.status
			states := []State{status.Pending, status.Synced, status.Syncing, status.Stopped}
			after.State = states[random.IntN(len(states))]
			m.statusChanged(m.status, &after)
			if after.State == status.Stopped {
				members = slices.Delete(members, at, at+1)
				m.impactChanged(factoryImpact{rejected: some()}) // no further effect
			}
		}
		for condition, holds := range map[ConditionType]bool{
			status.ConditionAuthenticated: !slices.ContainsFunc(members,
				func(m *member) bool { return m.impact.rejected.err != nil }),
			status.ConditionReachable: !slices.ContainsFunc(members,
				func(m *member) bool { return m.impact.unreachable.err != nil }),
			status.ConditionReady: !slices.ContainsFunc(members, (*member).blocksReady) &&
				!slices.ContainsFunc(e.Aggregator.mu.expected, func(gvr schema.GroupVersionResource) bool {
					return !slices.ContainsFunc(members, func(m *member) bool { return m.status.GVR == gvr })
				}),
		} {
			if got := e.Condition(condition); (got.Status != metav1.ConditionFalse) != holds {
				t.Fatalf("Condition(%s) = %+v, want it not False: %v", condition, got, holds)
			}
		}
	}
}

func numbered(n int) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: fmt.Sprintf("things%06d", n)}
}

// withPartitions returns a Health with many partitions without problems, and the Reporter of one.
func withPartitions(n int) (*Health, Reporter) {
	h := New(schema.GroupVersionResource{}, "", time.Now)
	h.Started()
	g := h.Begin("v1", "")
	var r Reporter
	for k := range n {
		r = h.Reporter(g, fmt.Sprint("ns-", k))
		r.RequestStarted(requests.VerbList)
		r.RequestEnded(requests.VerbList, nil)
	}
	return h, r
}

// TestCostOfHealthyPartitions verifies that recording a request takes memory independent of the number of
// other partitions.
func TestCostOfHealthyPartitions(t *testing.T) {
	costs := func(n int) float64 {
		h, r := withPartitions(n)
		defer h.Stopped("")
		return testing.AllocsPerRun(100, func() {
			r.RequestStarted(requests.VerbList)
			r.RequestEnded(requests.VerbWatch, nil)
		})
	}
	if few, lots := costs(10), costs(2000); lots != few {
		t.Errorf("recording a request makes %v allocations with many partitions, %v with few, want equal numbers", lots, few)
	}
}
