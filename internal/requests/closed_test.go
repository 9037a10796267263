package requests

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestClosedWatchesCauseNoMoreLists than client-go's, of which each is a whole one: the server accepts
// watches and closes them at once, without an error. It is told, and what comes is not missed for longer than
// the longest pause.
func TestClosedWatchesCauseNoMoreLists(t *testing.T) {
	for name, faults := range map[string][]apitest.Fault{
		"watches and watch-lists": {{Verb: "watch", Effect: apitest.Close("")},
			{Verb: "watch-list", Effect: apitest.Close("")}},
		"watches, there is no watch-list": {{Verb: "watch", Effect: apitest.Close("")},
			{Verb: "watch-list", Status: 400}},
		"watch-lists after their list": {{Verb: "watch", Effect: apitest.Close("")},
			{Verb: "watch-list", Effect: apitest.Close(metav1.InitialEventsAnnotationKey)}},
	} {
		t.Run(name, func(t *testing.T) {
			races(t, func(r *race) {
				for _, f := range faults {
					r.breaks(f)
				}
				r.start(false)
				if took := r.awaitSync(gadgets); took > 2*ordinaryPause.first {
					t.Errorf("synced after %v", took)
				}
				for _, after := range []time.Duration{10 * time.Minute, 20 * time.Minute} {
					time.Sleep(after)
					for _, verb := range []string{"list", "watch-list", "watch"} {
						ours, others := r.count(gadgets, verb), r.count(theirs, verb)
						if verb == "watch" && r.inline {
							// after which client-go goes on with the same watch
							others += r.count(theirs, "watch-list")
						}
						t.Logf("after %v more: %d times %s, client-go %d", after, ours, verb, others)
						if ours > others {
							t.Errorf("%s: %d requests, client-go sends %d", verb, ours, others)
						}
					}
				}
				if failures := r.heard.failures(); len(failures) < 20 ||
					slices.ContainsFunc(failures, func(r Reason) bool { return r != ReasonWatchClosed }) {
					t.Errorf("reported are %q", failures)
				}
				r.create("late")
				time.Sleep(relistPause.last)
				if keys := r.stores[gadgets].ListKeys(); len(keys) != 2 {
					r.Errorf("a minute after another object was made there are %q", keys)
				}
			})
		})
	}
}

// TestWatchListsThatEndEarly: one that is closed before its initial events are over is given up for a list,
// every time. client-go asks for another watch-list at once, without a pause, and never lists.
func TestWatchListsThatEndEarly(t *testing.T) {
	races(t, func(r *race) {
		r.breaks(apitest.Fault{Verb: "watch-list", Effect: apitest.Close("ADDED")})
		r.startOurs(false)
		if took := r.awaitSync(gadgets); took > time.Second {
			t.Errorf("synced after %v", took)
		}
		time.Sleep(time.Minute)
		r.server.CloseClientConnections() // after so long the watch goes on where it was
		time.Sleep(10 * time.Minute)
		if lists, watchLists := r.count(gadgets, "list"), r.count(gadgets, "watch-list"); lists != 1 ||
			watchLists != 1 {
			t.Errorf("%d lists and %d watch-lists, though the watch is well", lists, watchLists)
		}
		if len(r.heard.failures()) > 0 {
			t.Errorf("reported are %q", r.heard.failures())
		}
	})
}

// TestWatchesClosedAfterAnEvent: they bring what there is, so that nothing is wrong; but the next one waits
// for a moment. client-go asks for it at once.
func TestWatchesClosedAfterAnEvent(t *testing.T) {
	races(t, func(r *race) {
		r.breaks(apitest.Fault{Verb: "watch-list", Status: 400})
		r.breaks(apitest.Fault{Verb: "watch", Effect: apitest.Close("ADDED")})
		r.startOurs(false)
		r.awaitSync(gadgets)
		for n := range 100 {
			r.create(fmt.Sprint("b", n))
		}
		time.Sleep(3 * time.Minute)
		if keys := r.stores[gadgets].ListKeys(); len(keys) != 101 {
			t.Errorf("there are %d objects", len(keys))
		}
		if watches := r.count(gadgets, "watch"); watches < 100 ||
			watches > 3*60*1000/int(ordinaryPause.first.Milliseconds()) {
			t.Errorf("%d watches in three minutes", watches)
		}
		if lists := r.count(gadgets, "list"); lists != 1 || len(r.heard.failures()) > 0 {
			t.Errorf("%d lists, reported are %q", lists, r.heard.failures())
		}
	})
}

// TestWatchesClosedAtOnceAfterAPause: what comes is listed then, however the pause came about. That it lasts
// does not make the watch after it any longer.
func TestWatchesClosedAtOnceAfterAPause(t *testing.T) {
	for name, before := range map[string]apitest.Fault{
		"after watches that brought something": {Verb: "watch", Effect: apitest.Close("ADDED")},
		"after the server asked for time":      {Verb: "watch", Status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			races(t, func(r *race) {
				r.breaks(apitest.Fault{Verb: "watch-list", Status: 400})
				r.breaks(before)
				r.startOurs(false)
				r.awaitSync(gadgets)
				time.Sleep(10 * time.Second)
				r.breaks(apitest.Fault{Verb: "watch", Effect: apitest.Close("")})
				r.create("b") // which ends a watch that waits for it
				time.Sleep(2 * time.Minute)
				r.create("late")
				time.Sleep(relistPause.last)
				if keys := r.stores[gadgets].ListKeys(); len(keys) != 3 {
					r.Errorf("a minute after another object was made there are %q", keys)
				}
			})
		})
	}
}
