package health

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/requests"
)

// Conditions returns the conditions, ordered by type.
func (b *Aggregator) Conditions() []Condition {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conditionsLocked()
}

// Condition returns one condition. Its Status is empty for an unknown type.
func (b *Aggregator) Condition(t ConditionType) Condition {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.conditions[t]
}

func (b *Aggregator) conditionsLocked() []Condition {
	return naming.Map([]ConditionType{status.ConditionAuthenticated, status.ConditionReachable,
		status.ConditionReady, status.ConditionTypesKnown},
		func(t ConditionType) Condition { return b.mu.conditions[t] })
}

// updateConditionsLocked evaluates the conditions and notifies listeners of changes.
func (b *Aggregator) updateConditionsLocked() {
	totals := &b.mu.totals
	for _, now := range []Condition{
		b.contactLocked(status.ConditionAuthenticated, status.ReasonUnauthorized, totals.rejected,
			func(m *member) problem { return m.impact.rejected }),
		b.contactLocked(status.ConditionReachable, status.ReasonUnreachable, totals.unreachable,
			func(m *member) problem { return m.impact.unreachable }),
		b.typesKnownLocked(), b.readyLocked(),
	} {
		before := b.mu.conditions[now.Type]
		now.Since = before.Since
		if before.Status != now.Status {
			now.Since = b.now()
		}
		b.mu.conditions[now.Type] = now
		if before.Status != now.Status {
			b.notifyLocked(func(l *Listener) []func() { return bindCall2(l.ConditionChanged, before, now) })
		}
	}
}

// contactLocked returns a condition that is False if some informers have the problem that problemOf returns.
// The reason and message come from the first affected informer. Until the types are known, informers send no
// requests, and the source of types has the problem.
func (b *Aggregator) contactLocked(t ConditionType, reason status.Reason, affectedCount int,
	problemOf func(*member) problem) Condition {
	c := Condition{Type: t, Status: metav1.ConditionUnknown}
	switch p := b.mu.typesProblem; {
	case affectedCount > 0:
		affected := func(m *member) bool { return problemOf(m).err != nil }
		first := problemOf(b.mu.members[slices.IndexFunc(b.mu.members, affected)])
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, first.reason, OneLine(first.err.Error())
		if affectedCount > 1 {
			c.Message = fmt.Sprintf("%d of %d types: %s", affectedCount, len(b.mu.members), c.Message)
		}
	case b.mu.serverReached:
		c.Status = metav1.ConditionTrue
	case p.err != nil && p.reason == reason:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, OneLine(p.err.Error())
	}
	return c
}

func (b *Aggregator) typesKnownLocked() Condition {
	if b.mu.typesKnown {
		return Condition{Type: status.ConditionTypesKnown, Status: metav1.ConditionTrue}
	}
	c := Condition{
		Type: status.ConditionTypesKnown, Status: metav1.ConditionFalse,
		Reason: status.ReasonTypesUnknown, Message: requests.Explain(status.ReasonTypesUnknown),
	}
	if b.mu.typesProblem.err != nil {
		c.Message += ": " + OneLine(b.mu.typesProblem.err.Error())
	}
	return c
}

// readyLocked returns ConditionReady. If a required type is not synced, the condition names one with an
// informer, or else one without.
func (b *Aggregator) readyLocked() Condition {
	c := b.typesKnownLocked()
	c.Type = status.ConditionReady
	if !b.mu.typesKnown {
		return c
	}
	notReady := func(s Status) Condition {
		c.Status, c.Reason = metav1.ConditionFalse, s.Reason
		c.Message = fmt.Sprintf("%s: %s", naming.FormatType(s.GVR), s.Describe())
		return c
	}
	if b.mu.totals.notReady > 0 {
		return notReady(*b.mu.members[slices.IndexFunc(b.mu.members, (*member).blocksReady)].status)
	}
	for _, gvr := range b.mu.expected {
		if b.mu.totals.types[gvr] == 0 {
			return notReady(Status{GVR: gvr, State: status.Pending, Message: RequiredWithoutInformer})
		}
	}
	return c
}

// RequiredWithoutInformer is the message about a required type without an informer.
const RequiredWithoutInformer = "the type is required and has no informer"
