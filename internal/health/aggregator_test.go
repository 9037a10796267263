package health

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

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
			members = append(members,
				e.health(numbered(random.IntN(8)), random.IntN(2) == 0).member)
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
