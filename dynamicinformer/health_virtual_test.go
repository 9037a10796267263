package dynamicinformer

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/test/testcluster"
)

// briefStatus contains the fields of a status that these tests compare.
type briefStatus struct {
	State  status.State
	Reason status.Reason
	Stale  bool
}

// observe advances the clock and compares the status.
func observe(t *testing.T, i *Informer, step string, wait time.Duration, want briefStatus) {
	t.Helper()
	time.Sleep(wait)
	synctest.Wait()
	s := i.Status()
	if diff := cmp.Diff(want, briefStatus{s.State, s.Reason, s.Stale}); diff != "" {
		t.Errorf("%s (-want +got):\n%s\n%+v", step, diff, s)
	}
}

// TestWatchesWithoutBookmarks verifies that a server that accepts watches and sends nothing degrades the
// status when two bookmarks in a row are missing, or a list shows a change that two watches have missed. The
// type is then polled. Without a change, the pauses between these lists grow.
func TestWatchesWithoutBookmarks(t *testing.T) {
	for name, test := range map[string]struct {
		verbs    []string
		endless  bool // the server does not end watches at their timeout
		uid      types.UID
		changes  bool
		degrades bool
	}{
		"watches of a custom resource":         {[]string{"watch"}, false, "1", true, true},
		"quiet watches of a custom resource":   {[]string{"watch"}, false, "1", false, true},
		"endless watches":                      {[]string{"watch"}, true, "1", true, true},
		"all watches":                          {[]string{"watch", "watch-list"}, true, "1", true, true},
		"watches of an aggregated API":         {[]string{"watch"}, false, "", true, true},
		"endless watches of an aggregated API": {[]string{"watch"}, true, "", true, true},
		"all watches of an aggregated API":     {[]string{"watch", "watch-list"}, true, "", true, true},
		"quiet watches of an aggregated API":   {[]string{"watch"}, false, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				if len(test.verbs) == 1 {
					server.AddFaults(fault(widgetsPath, "watch-list", http.StatusUnprocessableEntity))
				}
				for _, verb := range test.verbs {
					server.AddFaults(apitest.Fault{Path: widgetsPath, Verb: verb,
						Effect: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
							w.Header().Set("Content-Type", "application/json")
							w.WriteHeader(http.StatusOK)
							_ = http.NewResponseController(w).Flush()
							seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
							timeout := time.NewTimer(time.Duration(seconds) * time.Second)
							defer timeout.Stop()
							ended := timeout.C
							if test.endless {
								ended = nil
							}
							select {
							case <-ended:
							case <-r.Context().Done():
							}
						}})
				}
				source := newRegistry()
				source.set("widgets", func(t *typesource.Type) { t.UID = test.uid })
				f := newVirtualFactory(t, server, Options{Types: source})
				i := mustInformer(t, f, widgets)
				start(t, f)
				time.Sleep(time.Minute)
				if test.changes {
					server.Create(t, widgets, widget("web", "a"))
				}
				time.Sleep(30 * time.Minute)
				if !test.degrades {
					observe(t, i, "quiet", 5*time.Hour, briefStatus{State: status.Synced})
					if lists := i.Status().Relists.Total(); lists < 3 || lists > 8 {
						t.Errorf("%d lists in six quiet hours, want 3 to 8", lists)
					}
					return
				}
				for n := range 40 {
					server.Create(t, widgets, widget("web", fmt.Sprint("b", n)))
					observe(t, i, "silent", 31*time.Second,
						briefStatus{State: status.Degraded, Reason: status.ReasonNoEvents, Stale: true})
				}
				if n := i.Snapshot().Len(); n < 40 {
					t.Errorf("%d objects, want all 40 from lists", n)
				}
				server.Repair()
				for n := range 40 {
					time.Sleep(time.Minute)
					server.Create(t, widgets, widget("web", fmt.Sprint("c", n)))
				}
				observe(t, i, "repaired", 0, briefStatus{State: status.Synced})
			})
		})
	}
}

// TestNoAnswerDegrades verifies that a request without a response degrades the status, and StatusChange
// notifies its readers.
func TestNoAnswerDegrades(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.AddFaults(unansweredRequests(widgetsPath))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		start(t, f)
		observe(t, i, "before the timeout", health.SyncTimeout-time.Second, briefStatus{State: status.Syncing})
		_, changed := i.StatusChange()
		observe(t, i, "at the timeout", time.Second, briefStatus{State: status.Degraded, Reason: status.ReasonNoAnswer})
		select {
		case <-changed:
		default:
			t.Error("StatusChange did not notify of the change")
		}
	})
}

// TestLossOfContact verifies that failing requests degrade a synced informer after half a minute. The cache
// keeps its content.
func TestLossOfContact(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		start(t, f)
		// a watch that ends earlier would be another failure
		observe(t, i, "at first", time.Minute, briefStatus{State: status.Synced})
		server.AddFaults(fault(widgetsPath, "", 503))
		server.CloseClientConnections()
		observe(t, i, "just failing", health.ContactTimeout-time.Second,
			briefStatus{State: status.Synced, Reason: status.ReasonRequestFailed})
		observe(t, i, "failing for long", time.Second,
			briefStatus{status.Degraded, status.ReasonRequestFailed, true})
		if got := i.GetStore().ListKeys(); len(got) != 1 {
			t.Errorf("the cache has the keys %q, want 1", got)
		}
		server.Repair()
		observe(t, i, "repaired", time.Minute, briefStatus{State: status.Synced})
		if s := i.Status(); s.Relists.Total() == 0 || s.LastError != nil || s.Message != "" {
			t.Errorf("after the recovery: Status() = %+v, want a relist and no error", s)
		}
	})
}

// TestUnreachableAffectsTheFactory verifies that an unreachable server is a condition of the factory. The
// types keep their states and become stale.
func TestUnreachableAffectsTheFactory(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		server.AddFaults(fault(gadgetsPath, "", 503)) // later, the server does not respond
		f := newVirtualFactory(t, server, Options{})
		i, other := mustInformer(t, f, widgets), mustInformer(t, f, gadgets)
		start(t, f)
		if c := f.Condition(status.ConditionReachable); c.Status != metav1.ConditionTrue {
			t.Errorf("the condition is %+v, want True", c)
		}
		server.Listener.Close()
		server.CloseClientConnections()
		observe(t, i, "unreachable", health.ContactTimeout-time.Second,
			briefStatus{State: status.Synced, Reason: status.ReasonUnreachable})
		observe(t, i, "unreachable for long", time.Hour, briefStatus{status.Synced, status.ReasonUnreachable, true})
		observe(t, other, "never synced", 0, briefStatus{State: status.Syncing, Reason: status.ReasonUnreachable})
		c := f.Condition(status.ConditionReachable)
		if c.Status != metav1.ConditionFalse || c.Reason != status.ReasonUnreachable ||
			!strings.HasPrefix(c.Message, "2 of 2 types: ") {
			t.Errorf("the condition is %+v, want False with reason Unreachable", c)
		}
		if got := i.GetStore().ListKeys(); len(got) != 1 {
			t.Errorf("the cache has the keys %q, want 1", got)
		}
	})
}

// TestConversionFailed verifies that a failing webhook degrades the status immediately, with the webhook's
// error.
func TestConversionFailed(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		broken := fault(widgetsPath, "", 500)
		broken.Message = `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://hook.default.svc:443/convert?timeout=30s": no endpoints available`
		server.AddFaults(broken)
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		start(t, f)
		observe(t, i, "failing", 0, briefStatus{State: status.Degraded, Reason: status.ReasonConversionFailed})
		server.Repair()
		observe(t, i, "repaired", time.Minute, briefStatus{State: status.Synced})
	})
}

// TestThrottledStatus verifies that the status shows throttling even while the client itself retries the
// request, up to ten times.
func TestThrottledStatus(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		busy := fault(widgetsPath, "", 429)
		busy.RetryAfter = "1"
		server.AddFaults(busy)
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		start(t, f)
		observe(t, i, "throttled", 3*time.Second,
			briefStatus{State: status.Syncing, Reason: status.ReasonThrottled})
		if s := i.Status(); s.LastError != nil || s.Message != "the server asks for fewer requests" {
			t.Errorf("Status() = %+v, want the message about throttling", s)
		}
		server.Repair()
		observe(t, i, "accepted", 2*time.Second, briefStatus{State: status.Synced})
	})
}

// TestWatchesFailWhileListsSucceed verifies that failing watches degrade the status once, after half a
// minute, even if lists succeed. The status recovers when a watch stays open. The cache is at most one minute
// behind.
func TestWatchesFailWhileListsSucceed(t *testing.T) {
	closes := testcluster.Close("")
	for name, tt := range map[string]struct {
		reason status.Reason
		broken []apitest.Fault
	}{
		"closed at once": {status.ReasonWatchClosed, []apitest.Fault{{Verb: "watch", Effect: closes},
			{Verb: "watch-list", Effect: closes}}},
		"failing": {status.ReasonRequestFailed, []apitest.Fault{{Verb: "watch", Status: 500},
			{Verb: "watch-list", Status: 500}}},
	} {
		onFakeClock(t, func(t *testing.T, server *apitest.Server) {
			for _, f := range tt.broken {
				f.Path = widgetsPath
				server.AddFaults(f)
			}
			server.Create(t, widgets, widget("web", "a"))
			d := &eventLog{}
			f := newVirtualFactory(t, server, Options{Listener: d.listener()})
			i := mustInformer(t, f, widgets)
			start(t, f)
			if err := f.WaitForSync(t.Context()); err != nil {
				t.Errorf("%s: WaitForSync() = %v", name, err)
			}
			observe(t, i, name+", at first", health.ContactTimeout-time.Second,
				briefStatus{State: status.Synced, Reason: tt.reason})
			observe(t, i, name+", for half an hour", 30*time.Minute, briefStatus{status.Degraded, tt.reason, true})
			if s := i.Status(); !strings.HasPrefix(s.Message, "watch: ") || s.LastError == nil ||
				s.Relists.Failed < 20 {
				t.Errorf("%s: Status() = %+v, want the watch's error and failed relists", name, s)
			}
			var changes []string
			for _, line := range d.all() {
				if strings.HasPrefix(line, "widgets: ") && strings.Contains(line, " -> ") {
					changes = append(changes, line)
				}
			}
			reason := string(tt.reason)
			want := []string{
				"widgets:  -> Pending ", "widgets: Pending -> Syncing ", "widgets: Syncing -> Synced ",
				"widgets: Synced -> Synced " + reason, "widgets: Synced -> Degraded " + reason,
			}
			if diff := cmp.Diff(want, changes); diff != "" {
				t.Errorf("%s: changes of the status (-want +got):\n%s", name, diff)
			}
			server.Create(t, widgets, widget("web", "b"))
			observe(t, i, name+", a minute later", time.Minute, briefStatus{status.Degraded, tt.reason, true})
			if keys := keysOf(i); len(keys) != 2 {
				t.Errorf("%s: the cache has the keys %q, want 2", name, keys)
			}
			server.Repair()
			observe(t, i, name+", repaired", time.Minute+time.Second, briefStatus{State: status.Synced})
		})
	}
}

// TestExpiredWatchIsNoFailure verifies that an expired watch counts as a relist and not as a failure.
func TestExpiredWatchIsNoFailure(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		failures := 0
		d := &eventLog{}
		listener := d.listener()
		listener.RequestFailed = func(status.RequestFailure) { failures++ }
		f := newVirtualFactory(t, server, Options{Listener: listener})
		i := mustInformer(t, f, widgets)
		start(t, f)
		observe(t, i, "at first", time.Minute, briefStatus{State: status.Synced})
		server.AddFaults(fault(widgetsPath, "watch", 410))
		server.CloseClientConnections()
		observe(t, i, "expired", 0, briefStatus{State: status.Synced})
		server.Repair()
		observe(t, i, "relisted", time.Minute, briefStatus{State: status.Synced})
		if diff := cmp.Diff(status.Relists{Expired: 1}, i.Status().Relists); diff != "" || failures != 0 {
			t.Errorf("relists (-want +got):\n%s\n%d failures", diff, failures)
		}
		if relists := strings.Count(strings.Join(d.all(), "\n"), "widgets: relisted Expired"); relists != 1 {
			t.Errorf("the listener received %q, want one relist because of Expired", d.all())
		}
	})
}

// TestForbiddenAndGranted verifies that a denial degrades the status immediately and names the verb. A grant
// ends it without a restart.
func TestForbiddenAndGranted(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.AddFaults(fault(widgetsPath, "", 403))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		start(t, f)
		observe(t, i, "forbidden", 0, briefStatus{State: status.Degraded, Reason: status.ReasonForbidden})
		if s := i.Status(); !strings.HasPrefix(s.Message, "list denied: ") || !s.Settled() {
			t.Errorf("Status() = %+v, want the denied list, settled", s)
		}
		server.Repair()
		observe(t, i, "granted", 5*time.Minute, briefStatus{State: status.Synced})
	})
}

// TestTerminatingStaysSynced verifies that a terminating type stays synced while its objects are deleted. It
// is not installed once its CRD is deleted.
func TestTerminatingStaysSynced(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		types := &scriptedSource{}
		f := newVirtualFactory(t, server, Options{Types: types})
		i := mustInformer(t, f, widgets)
		types.set(nil)
		start(t, f)
		types.set(func(t *typesource.Type) { t.Terminating = true })
		observe(t, i, "terminating", 0, briefStatus{State: status.Synced})
		if !i.Status().Terminating {
			t.Error("Status().Terminating = false for a terminating type")
		}
		types.listener.SetComplete()
		types.listener.RemoveType(widgets.GroupResource(), true)
		observe(t, i, "gone", 0, briefStatus{State: status.Pending, Reason: status.ReasonNotInstalled})
		if i.Status().Terminating {
			t.Error("Status().Terminating = true for a removed type")
		}
	})
}
