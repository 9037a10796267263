package requests

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestClosedWatchesCauseNoMoreLists compares the lists with client-go's while the server accepts watches and
// closes them immediately, without an error. The failure is reported, and changes are seen after the longest
// pause at the latest.
func TestClosedWatchesCauseNoMoreLists(t *testing.T) {
	for name, faults := range map[string][]apitest.Fault{
		"watches and watch-lists": {{Verb: "watch", Effect: testcluster.Close("")},
			{Verb: "watch-list", Effect: testcluster.Close("")}},
		"watches, there is no watch-list": {{Verb: "watch", Effect: testcluster.Close("")},
			{Verb: "watch-list", Status: 400}},
		"watch-lists after their list": {{Verb: "watch", Effect: testcluster.Close("")},
			{Verb: "watch-list", Effect: testcluster.Close(metav1.InitialEventsAnnotationKey)}},
	} {
		t.Run(name, func(t *testing.T) {
			withVirtualClock(t, func(r *clientComparison) {
				for _, f := range faults {
					r.addFault(f)
				}
				r.start(false)
				if elapsed := r.awaitSync(gadgets); elapsed > 2*backoffs[stageOrdinary].first {
					t.Errorf("synced after %v, want two pauses at most", elapsed)
				}
				for _, after := range []time.Duration{10 * time.Minute, 20 * time.Minute} {
					time.Sleep(after)
					for _, verb := range []string{"list", "watch-list", "watch"} {
						ours, others := r.count(gadgets, verb), r.count(clientGoGVR, verb)
						if verb == "watch" {
							// ^ after which client-go continues with the same watch
							others += r.count(clientGoGVR, "watch-list")
						}
						t.Logf("after %v more: %d times %s, client-go %d", after, ours, verb, others)
						if ours > others {
							t.Errorf("%s: %d requests, want at most as many as client-go, %d", verb, ours,
								others)
						}
					}
				}
				if failures := r.reports.failures(); len(failures) < 20 ||
					slices.ContainsFunc(failures,
						func(r status.Reason) bool { return r != status.ReasonWatchClosed }) {
					t.Errorf("reported the failures %q, want only closed watches", failures)
				}
				r.create("late")
				time.Sleep(backoffs[stageRelist].longest)
				if keys := r.stores[gadgets].ListKeys(); len(keys) != 2 {
					r.Errorf("keys a minute after another object was created = %q, want 2", keys)
				}
			})
		})
	}
}

// TestWatchListsThatEndEarly checks that a watch-list closed during its initial events is followed by a list,
// every time. client-go requests another watch-list without a pause, and never lists.
func TestWatchListsThatEndEarly(t *testing.T) {
	withVirtualClock(t, func(r *clientComparison) {
		r.addFault(apitest.Fault{Verb: "watch-list", Effect: testcluster.Close("ADDED")})
		r.startOurs(false)
		if elapsed := r.awaitSync(gadgets); elapsed > time.Second {
			t.Errorf("synced after %v, want at most a second", elapsed)
		}
		time.Sleep(time.Minute)
		r.server.CloseClientConnections() // after this time the watch continues from its version
		time.Sleep(10 * time.Minute)
		if lists, watchLists := r.count(gadgets, "list"), r.count(gadgets, "watch-list"); lists != 1 ||
			watchLists != 1 {
			t.Errorf("%d lists and %d watch-lists, want 1 each because the watch continues", lists,
				watchLists)
		}
		if len(r.reports.failures()) > 0 {
			t.Errorf("reported the failures %q, want none", r.reports.failures())
		}
	})
}

// TestWatchesClosedAfterAnEvent checks that a watch that is closed after an event is not a failure, and that
// the next watch waits for a moment. client-go does not wait.
func TestWatchesClosedAfterAnEvent(t *testing.T) {
	withVirtualClock(t, func(r *clientComparison) {
		r.addFault(apitest.Fault{Verb: "watch-list", Status: 400})
		r.addFault(apitest.Fault{Verb: "watch", Effect: testcluster.Close("ADDED")})
		r.startOurs(false)
		r.awaitSync(gadgets)
		for n := range 100 {
			r.create(fmt.Sprint("b", n))
		}
		time.Sleep(3 * time.Minute)
		if keys := r.stores[gadgets].ListKeys(); len(keys) != 101 {
			t.Errorf("%d objects, want 101", len(keys))
		}
		if watches := r.count(gadgets, "watch"); watches < 100 ||
			watches > 3*60*1000/int(backoffs[stageOrdinary].first.Milliseconds()) {
			t.Errorf("%d watches in three minutes, want at least 100 with pauses", watches)
		}
		if lists := r.count(gadgets, "list"); lists != 1 || len(r.reports.failures()) > 0 {
			t.Errorf("%d lists and the failures %q, want 1 and none", lists, r.reports.failures())
		}
	})
}
