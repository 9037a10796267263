package follow

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func newStatus(state status.State, reason status.Reason, message string) status.Status {
	return status.Status{GVR: widgets, State: state, Reason: reason, Message: message}
}

// TestStatusReporter verifies that only unusual states are reported, and pending states after a delay.
func TestStatusReporter(t *testing.T) {
	const waits = "waits for it"
	none := status.Status{GVR: widgets}
	pending := newStatus(status.Pending, status.ReasonTypesUnknown, waits)
	absent := newStatus(status.Pending, status.ReasonNotInstalled, waits)
	syncing := newStatus(status.Syncing, "", "")
	synced := newStatus(status.Synced, "", "")
	degraded := newStatus(status.Degraded, status.ReasonForbidden, "no\x1b right")
	gone := newStatus(status.Gone, status.ReasonNotInstalled, "no longer there")
	const name = "widgets.example.com: "
	tests := map[string]struct {
		states []status.Status
		begun  bool
		pause  time.Duration
		want   string
	}{
		"nothing special": {states: []status.Status{none, pending, syncing, synced},
			pause: statusDelay / 4},
		"a long wait": {states: []status.Status{none, pending, syncing, synced}, pause: statusDelay + 1,
			want: name + "Pending: " + waits + "\n"},
		"no such type": {states: []status.Status{none, absent}, pause: 2 * statusDelay},
		"trouble and recovery": {states: []status.Status{none, syncing, degraded, synced},
			want: name + "Degraded: no� right\n" + name + "Synced\n"},
		"reported once": {states: []status.Status{none, syncing, degraded, degraded},
			want: name + "Degraded: no� right\n"},
		"gone and back": {states: []status.Status{none, synced, gone, absent, syncing, synced},
			want: name + "Gone: no longer there\n" + name + "Synced\n"},
		"a new type": {states: []status.Status{none, syncing, synced}, begun: true,
			want: name + "Synced\n"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Setenv("LC_ALL", "C.UTF-8")
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				reporter := newStatusReporter(&out)
				if tt.begun {
					reporter.markSynced()
				}
				for i, after := range tt.states[1:] {
					reporter.stateChanged(tt.states[i], after)
					time.Sleep(tt.pause) // on the virtual clock
					synctest.Wait()
				}
				reporter.end()
				reporter.stateChanged(synced, degraded)
				time.Sleep(2 * statusDelay)
				synctest.Wait()
				if out.String() != tt.want {
					t.Errorf("printed\n%swant\n%s", out.String(), tt.want)
				}
			})
		})
	}
}
