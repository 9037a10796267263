package health

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/requests"
)

// ConditionType names a condition of a factory.
type ConditionType string

const (
	// ConditionReady is true when it is known which types there are and every required type is synced. A
	// type that is not required never keeps a factory from being ready.
	ConditionReady ConditionType = "Ready"
	// ConditionReachable is false while requests of some type get no answer: three in a row. The types keep
	// their state meanwhile, and are marked stale after half a minute; none is taken to be gone.
	ConditionReachable ConditionType = "Reachable"
	// ConditionAuthenticated is false while requests of some type are answered with 401.
	ConditionAuthenticated ConditionType = "Authenticated"
	// ConditionTypesKnown is true once Options.Types has told which types there are, and without it.
	ConditionTypesKnown ConditionType = "TypesKnown"
)

// Condition is one thing that is true or not of a factory as a whole.
type Condition struct {
	Type ConditionType
	// Status is Unknown until something has been heard.
	Status metav1.ConditionStatus
	// Reason is why, for a machine; ReasonNone when all is well.
	Reason requests.Reason
	// Message is why, for a person: one line.
	Message string
	// Since is when Status became what it is.
	Since time.Time
}

// Conditions returns the conditions, ordered by type.
func (b *Hub) Conditions() []Condition {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conditionsLocked()
}

// Condition returns one condition; its Status is empty for a type that there is none of.
func (b *Hub) Condition(t ConditionType) Condition {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.conditions[t]
}

func (b *Hub) conditionsLocked() []Condition {
	var all []Condition
	for _, t := range []ConditionType{ConditionAuthenticated, ConditionReachable, ConditionReady,
		ConditionTypesKnown} {
		all = append(all, b.mu.conditions[t])
	}
	return all
}

// reviewLocked brings the conditions in line with what is known.
func (b *Hub) reviewLocked() {
	for _, now := range []Condition{b.authenticatedLocked(), b.reachableLocked(), typesKnown(b.mu.typesKnown),
		b.readyLocked()} {
		before := b.mu.conditions[now.Type]
		now.Since = before.Since
		if before.Status != now.Status {
			now.Since = b.now()
		}
		b.mu.conditions[now.Type] = now
		if before.Status != now.Status {
			b.tellLocked(func(l *Listener) []func() { return l.conditionChanged(before, now) })
		}
	}
}

func (b *Hub) authenticatedLocked() Condition {
	c := Condition{Type: ConditionAuthenticated, Status: heard(b.mu.reached)}
	return c.unless(b.mu.sums.refused, b.mu.members, func(m *member) trouble { return m.standing.refused })
}

func (b *Hub) reachableLocked() Condition {
	c := Condition{Type: ConditionReachable, Status: heard(b.mu.reached)}
	return c.unless(b.mu.sums.unreached, b.mu.members,
		func(m *member) trouble { return m.standing.unreached })
}

func heard(reached bool) metav1.ConditionStatus {
	if reached {
		return metav1.ConditionTrue
	}
	return metav1.ConditionUnknown
}

// unless returns the condition, false if some informers have a trouble, whose message is that of the first of
// them.
func (c Condition) unless(affected int, members []*member, of func(*member) trouble) Condition {
	if affected == 0 {
		return c
	}
	first := of(members[slices.IndexFunc(members, func(m *member) bool { return of(m).err != nil })])
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, first.reason, OneLine(first.err.Error())
	if affected > 1 {
		c.Message = fmt.Sprintf("%d of %d types: %s", affected, len(members), c.Message)
	}
	return c
}

func typesKnown(known bool) Condition {
	if known {
		return Condition{Type: ConditionTypesKnown, Status: metav1.ConditionTrue}
	}
	return Condition{
		Type: ConditionTypesKnown, Status: metav1.ConditionFalse,
		Reason: requests.ReasonTypesUnknown, Message: requests.Explain(requests.ReasonTypesUnknown),
	}
}

// readyLocked returns ConditionReady: of the required types that are not synced it names one that an informer
// follows, or else one that nobody has asked for.
func (b *Hub) readyLocked() Condition {
	c := typesKnown(b.mu.typesKnown)
	c.Type = ConditionReady
	if !b.mu.typesKnown {
		return c
	}
	lacking := func(s Status) Condition {
		c.Status, c.Reason = metav1.ConditionFalse, s.Reason
		c.Message = fmt.Sprintf("%s: %s", FormatGVR(s.GVR), Describe(s.State, s.Reason, s.Message))
		return c
	}
	if b.mu.sums.lacking > 0 {
		return lacking(*b.mu.members[slices.IndexFunc(b.mu.members, (*member).lacks)].status)
	}
	for _, gvr := range b.mu.expected {
		if b.mu.sums.types[gvr] == 0 {
			return lacking(NotAskedFor(gvr))
		}
	}
	return c
}

// NotAskedFor is the status of a type that is required, and that nobody has asked for.
func NotAskedFor(gvr schema.GroupVersionResource) Status {
	return Status{GVR: gvr, State: StatePending, Message: "it is required, and nobody has asked for it"}
}
