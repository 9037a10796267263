package follow

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func status(state dynamicinformer.State, reason dynamicinformer.Reason, message string) dynamicinformer.Status {
	return dynamicinformer.Status{GVR: widgets, State: state, Reason: reason, Message: message}
}

// TestTeller: only what is out of the ordinary is said, and what may pass soon only when it lasts.
func TestTeller(t *testing.T) {
	const waits = "waits for it"
	none := dynamicinformer.Status{GVR: widgets}
	pending := status(dynamicinformer.StatePending, dynamicinformer.ReasonTypesUnknown, waits)
	absent := status(dynamicinformer.StatePending, dynamicinformer.ReasonNotInstalled, waits)
	syncing := status(dynamicinformer.StateSyncing, "", "")
	synced := status(dynamicinformer.StateSynced, "", "")
	degraded := status(dynamicinformer.StateDegraded, dynamicinformer.ReasonForbidden, "no\x1b right")
	gone := status(dynamicinformer.StateGone, dynamicinformer.ReasonNotInstalled, "no longer there")
	const name = "widgets.example.com: "
	tests := map[string]struct {
		states []dynamicinformer.Status
		begun  bool
		pause  time.Duration
		want   string
	}{
		"nothing special":      {states: []dynamicinformer.Status{none, pending, syncing, synced}, pause: patience / 4},
		"a long wait":          {states: []dynamicinformer.Status{none, pending, syncing, synced}, pause: patience + 1, want: name + "Pending: " + waits + "\n"},
		"no such type":         {states: []dynamicinformer.Status{none, absent}, pause: 2 * patience},
		"trouble and recovery": {states: []dynamicinformer.Status{none, syncing, degraded, synced}, want: name + "Degraded: no� right\n" + name + "Synced\n"},
		"said once":            {states: []dynamicinformer.Status{none, syncing, degraded, degraded}, want: name + "Degraded: no� right\n"},
		"gone and back":        {states: []dynamicinformer.Status{none, synced, gone, absent, syncing, synced}, want: name + "Gone: no longer there\n" + name + "Synced\n"},
		"a new type":           {states: []dynamicinformer.Status{none, syncing, synced}, begun: true, want: name + "Synced\n"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Setenv("LC_ALL", "C.UTF-8")
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				teller := newTeller(&out)
				if tt.begun {
					teller.begin()
				}
				for i, after := range tt.states[1:] {
					teller.changed(tt.states[i], after)
					time.Sleep(tt.pause) // of the bubble's clock
					synctest.Wait()
				}
				teller.end()
				teller.changed(synced, degraded)
				time.Sleep(2 * patience)
				synctest.Wait()
				if out.String() != tt.want {
					t.Errorf("said\n%swant\n%s", out.String(), tt.want)
				}
			})
		})
	}
}

// TestTellerOfConditions: what keeps all types from being followed is said once, however many factories there are.
func TestTellerOfConditions(t *testing.T) {
	condition := func(of dynamicinformer.ConditionType, status metav1.ConditionStatus) dynamicinformer.Condition {
		return dynamicinformer.Condition{Type: of, Status: status, Message: "401"}
	}
	var out bytes.Buffer
	teller := newTeller(&out)
	change := func(of dynamicinformer.ConditionType, before, after metav1.ConditionStatus) {
		teller.conditionChanged(condition(of, before), condition(of, after))
	}
	const yes, no, none = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	change(dynamicinformer.ConditionReachable, none, no)
	change(dynamicinformer.ConditionReachable, no, yes)
	change(dynamicinformer.ConditionAuthenticated, none, yes)
	change(dynamicinformer.ConditionAuthenticated, yes, no) // said with its reason when it begins to be news
	teller.begin()
	change(dynamicinformer.ConditionReady, yes, no)
	change(dynamicinformer.ConditionAuthenticated, none, no)
	change(dynamicinformer.ConditionAuthenticated, no, yes)
	change(dynamicinformer.ConditionAuthenticated, no, yes)
	change(dynamicinformer.ConditionReachable, yes, no)
	want := "warning: the API server does not accept the credentials any more, so that no change is shown: 401\n" +
		"the API server accepts the credentials again\n" +
		"warning: the API server does not answer, so that no change is shown: 401\n"
	if out.String() != want {
		t.Errorf("said\n%swant\n%s", out.String(), want)
	}
}

// TestUnlessSoon: a line is said when patience is over, and not when what it tells of is over before.
func TestUnlessSoon(t *testing.T) {
	for want, pause := range map[string]time.Duration{"": patience - 1, "slow\n": patience + 1} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			soon := newTeller(&out).unlessSoon("slow")
			time.Sleep(pause) // of the bubble's clock
			soon()
			time.Sleep(2 * patience)
			synctest.Wait()
			if out.String() != want {
				t.Errorf("after %v said %q, want %q", pause, out.String(), want)
			}
		})
	}
}
