package health

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/typename"
)

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
	for _, t := range []ConditionType{status.ConditionAuthenticated, status.ConditionReachable,
		status.ConditionReady, status.ConditionTypesKnown} {
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
			b.tellLocked(func(l *Listener) []func() { return conditionChanged(l, before, now) })
		}
	}
}

func (b *Hub) authenticatedLocked() Condition {
	c := Condition{Type: status.ConditionAuthenticated, Status: heard(b.mu.reached)}
	return unless(c, b.mu.sums.refused, b.mu.members, func(m *member) trouble { return m.standing.refused })
}

func (b *Hub) reachableLocked() Condition {
	c := Condition{Type: status.ConditionReachable, Status: heard(b.mu.reached)}
	return unless(c, b.mu.sums.unreached, b.mu.members,
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
func unless(c Condition, affected int, members []*member, of func(*member) trouble) Condition {
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
		return Condition{Type: status.ConditionTypesKnown, Status: metav1.ConditionTrue}
	}
	return Condition{
		Type: status.ConditionTypesKnown, Status: metav1.ConditionFalse,
		Reason: requests.ReasonTypesUnknown, Message: requests.Explain(requests.ReasonTypesUnknown),
	}
}

// readyLocked returns ConditionReady: of the required types that are not synced it names one that an informer
// follows, or else one that nobody has asked for.
func (b *Hub) readyLocked() Condition {
	c := typesKnown(b.mu.typesKnown)
	c.Type = status.ConditionReady
	if !b.mu.typesKnown {
		return c
	}
	lacking := func(s Status) Condition {
		c.Status, c.Reason = metav1.ConditionFalse, s.Reason
		c.Message = fmt.Sprintf("%s: %s", typename.Format(s.GVR), s.Describe())
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
