package dynamicinformer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

const namespacesPath = "/api/v1/namespaces"

// forbid denies all lists and watches of the paths.
func forbid(server *apitest.Server, paths ...string) {
	for _, path := range paths {
		for _, verb := range []string{"list", "watch", "watch-list"} {
			server.AddFaults(apitest.Fault{Path: path, Verb: verb, Status: 403,
				Message: path + " is not for you to list"})
		}
	}
}

func createNamespaces(t *testing.T, server *apitest.Server, names ...string) {
	t.Helper()
	for _, name := range names {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		u.SetName(name)
		server.Create(t, namespacesGVR, u)
	}
}

// countRequests returns the number of lists and watches since the last call.
func (s *patternTest) countRequests(path string) int {
	n := 0
	for _, verb := range []string{"list ", "watch-list "} {
		n += count(s.server, verb+path+"?")
	}
	before := s.requestCounts[path]
	s.requestCounts[path] = n
	return n - before
}

// patternTest is an informer of widgets in namespaces that match patterns, on a server that denies reading
// all namespaces.
type patternTest struct {
	*testing.T
	server        *apitest.Server
	factory       *Factory
	informer      *Informer
	events        *events
	failures      []string
	requestCounts map[string]int
}

func testPatterns(t *testing.T, namespaces Namespaces, prepare func(*apitest.Server),
	test func(*patternTest)) {
	t.Helper()
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		createNamespaces(t, server, "prod", "team-a", "team-b", "team-sandbox", "other")
		for _, ns := range []string{"prod", "team-a", "team-b", "team-sandbox", "other"} {
			server.Create(t, widgets, widget(ns, "x"))
		}
		forbid(server, widgetsPath)
		if prepare != nil {
			prepare(server)
		}
		f := newVirtualFactory(t, server, Options{Linger: -1})
		h, err := f.Acquire(widgets, ResourceOptions{Namespaces: namespaces})
		must(t, err)
		s := &patternTest{T: t, server: server, factory: f, informer: h.Informer(),
			requestCounts: map[string]int{}}
		s.events = record(t, s.informer)
		_, err = f.AddListener(status.Listener{RequestFailed: func(f status.RequestFailure) {
			s.failures = append(
				s.failures, f.GVR.Resource)
		}})
		must(t, err)
		test(s)
		h.Release()
		synctest.Wait()
		if remaining := f.Status(); len(remaining) > 0 {
			t.Errorf("informers remain after the release: %+v", remaining)
		}
	})
}

func (s *patternTest) expectStatus(step string, state status.State, reason status.Reason) status.Status {
	s.Helper()
	synctest.Wait()
	status := s.informer.Status()
	if status.State != state || status.Reason != reason {
		s.Errorf("%s: the status is %+v", step, status)
	}
	return status
}

var teamNamespaces = MatchingNamespaces([]string{"prod", "team-*"}, []string{"team-sandbox"})

// TestPatternsWithoutClusterAccess verifies that each matching namespace is listed and watched separately,
// from its creation to its deletion.
func TestPatternsWithoutClusterAccess(t *testing.T) {
	testPatterns(t, teamNamespaces, nil, func(s *patternTest) {
		start(s.T, s.factory)
		if err := s.factory.WaitForSync(s.Context(), widgets); err != nil {
			s.Errorf("WaitForSync() = %v", err)
		}
		expectEvents(s.T, "initial objects", s.events, "add prod/x", "add team-a/x", "add team-b/x")
		s.expectStatus("at first", status.Synced, status.ReasonNone)
		s.countRequests(inNamespace("team-a"))

		createNamespaces(s.T, s.server, "team-c", "others")
		s.server.Create(s.T, widgets, widget("team-c", "x"), widget("others", "x"), widget("team-a", "y"))
		expectEvents(s.T, "a namespace is created", s.events, "add team-a/y", "add team-c/x")

		namespaces := s.server.Client(s.T).Resource(namespacesGVR)
		if err := namespaces.Delete(context.Background(), "team-b", metav1.DeleteOptions{}); err != nil {
			s.Fatal(err)
		}
		expectEvents(s.T, "a namespace goes", s.events, "gone team-b/x")
		s.server.Create(s.T, widgets, widget("team-b", "late"))
		expectEvents(s.T, "an unwatched namespace", s.events)
		forbid(s.server, inNamespace("team-b"))
		createNamespaces(s.T, s.server, "team-b")
		s.expectStatus("it is recreated without rights", status.Degraded, status.ReasonForbidden)
		s.server.Repair()
		forbid(s.server, widgetsPath)
		time.Sleep(2 * time.Second)
		expectEvents(s.T, "with rights", s.events, "add team-b/late", "add team-b/x")

		status := s.expectStatus("at the end", status.Synced, status.ReasonNone)
		if status.Incarnation != 1 || status.Relists.Total() != 0 || len(s.failures) != 1 {
			s.Errorf("incarnation %d, relists %+v, failures %v; want 1, none, one failure",
				status.Incarnation, status.Relists, s.failures)
		}
		if n := s.countRequests(inNamespace("team-a")); n != 0 {
			s.Errorf("an unchanged namespace was listed again %d times, want 0", n)
		}
		if n := s.countRequests(inNamespace("other")) + s.countRequests(inNamespace("team-sandbox")); n != 0 {
			s.Errorf("namespaces that do not match were listed %d times, want 0", n)
		}
	})
}

// TestPatternsWithoutNamespaces verifies that only the exact names are watched while namespaces cannot be
// listed. The namespaces that match the patterns are watched as soon as namespaces can be listed.
func TestPatternsWithoutNamespaces(t *testing.T) {
	forbidden := func(server *apitest.Server) { forbid(server, namespacesPath) }
	testPatterns(t, teamNamespaces, forbidden, func(s *patternTest) {
		start(s.T, s.factory)
		expectEvents(s.T, "by name", s.events, "add prod/x")
		current := s.expectStatus("by name", status.Degraded, status.ReasonForbidden)
		for _, part := range []string{"prod,team-*", widgetsPath, namespacesPath} {
			if !strings.Contains(current.Message, part) {
				s.Errorf("Message = %q, want it to contain %q", current.Message, part)
			}
		}
		if !current.Settled() || !current.Stale || !s.informer.HasSynced() {
			s.Errorf("Status() = %+v, want settled, stale and synced", current)
		}
		s.server.Repair()
		forbid(s.server, widgetsPath)
		time.Sleep(6 * time.Minute)
		expectEvents(s.T, "the namespaces may be read", s.events, "add team-a/x", "add team-b/x")
		s.expectStatus("the namespaces may be read", status.Synced, status.ReasonNone)
	})
	testPatterns(t, MatchingNamespaces([]string{"team-*"}, nil), forbidden, func(s *patternTest) {
		start(s.T, s.factory)
		expectEvents(s.T, "nothing by name", s.events)
		s.expectStatus("nothing by name", status.Degraded, status.ReasonForbidden)
		if s.informer.HasSynced() {
			s.Error("HasSynced() = true while the namespaces are unknown")
		}
		s.server.Repair()
		forbid(s.server, namespacesPath)
		s.informer.Retry()
		expectEvents(s.T, "all may be listed", s.events, "add team-a/x", "add team-b/x", "add team-sandbox/x")
		s.expectStatus("all may be listed", status.Synced, status.ReasonNone)
	})
}

// TestPatternsWithUnknownNamespaces verifies that an informer is not synced while the namespaces to watch are
// unknown.
func TestPatternsWithUnknownNamespaces(t *testing.T) {
	namespacesFail := map[string]struct {
		broken []apitest.Fault
		reason status.Reason
	}{
		"hanging":   {[]apitest.Fault{unansweredRequests(namespacesPath)}, status.ReasonNoAnswer},
		"broken":    {[]apitest.Fault{fault(namespacesPath, "", 500)}, status.ReasonRequestFailed},
		"throttled": {[]apitest.Fault{fault(namespacesPath, "", 429)}, status.ReasonThrottled},
	}
	for name, tt := range namespacesFail {
		breakAll := func(server *apitest.Server) { server.AddFaults(tt.broken...) }
		t.Run(name+" at startup", func(t *testing.T) {
			testPatterns(t, teamNamespaces, breakAll, func(s *patternTest) {
				start(s.T, s.factory)
				time.Sleep(time.Minute)
				status := s.expectStatus("unknown", status.Degraded, tt.reason)
				for _, cause := range []string{widgetsPath, "the namespaces are unknown"} {
					if !strings.Contains(status.Message, cause) {
						s.Errorf("Message = %q, want it to contain %q", status.Message, cause)
					}
				}
				s.recover()
			})
		})
		t.Run(name+" once synced", func(t *testing.T) {
			repair := func(server *apitest.Server) { server.Repair() }
			testPatterns(t, teamNamespaces, repair, func(s *patternTest) {
				start(s.T, s.factory)
				s.expectStatus("allowed", status.Synced, status.ReasonNone)
				forbid(s.server, widgetsPath)
				breakAll(s.server)
				s.server.CloseClientConnections()
				time.Sleep(time.Minute)
				status := s.expectStatus("revoked", status.Degraded, tt.reason)
				if !status.Stale || status.Settled() {
					s.Errorf("Status() = %+v, want stale, not settled", status)
				}
				s.recover()
			})
		})
	}
}

// TestPatternsWithOutdatedNamespaces verifies that the status reports that new namespaces may be missing.
func TestPatternsWithOutdatedNamespaces(t *testing.T) {
	testPatterns(t, teamNamespaces, nil, func(s *patternTest) {
		start(s.T, s.factory)
		s.expectStatus("at first", status.Synced, status.ReasonNone)
		forbid(s.server, namespacesPath)
		s.server.CloseClientConnections()
		time.Sleep(2 * time.Minute)
		if status := s.expectStatus("outdated", status.Degraded, status.ReasonForbidden); !status.Stale {
			s.Errorf("Status() = %+v, want stale", status)
		}
		s.recover()
	})
}

// recover allows listing namespaces, and checks that all matching namespaces are watched.
func (s *patternTest) recover() {
	s.server.RepairPath(namespacesPath)
	s.server.CloseClientConnections() // ends the unanswered requests
	time.Sleep(6 * time.Minute)
	s.expectStatus("recovered", status.Synced, status.ReasonNone)
	s.events.take()
	s.server.Create(s.T, widgets, widget("team-b", "new"))
	expectEvents(s.T, "recovered", s.events, "add team-b/new")
}

// TestPatternsGrantedAndRevoked verifies that the informer lists all namespaces at once while that is
// allowed. The cache keeps its content when the permission changes.
func TestPatternsGrantedAndRevoked(t *testing.T) {
	testPatterns(t, teamNamespaces, nil, func(s *patternTest) {
		start(s.T, s.factory)
		expectEvents(s.T, "forbidden", s.events, "add prod/x", "add team-a/x", "add team-b/x")
		s.server.Repair()
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		s.events.take() // drop updates without changes
		s.server.Create(s.T, widgets, widget("team-a", "y"), widget("team-z", "unheard-of"),
			widget("other", "y"))
		expectEvents(s.T, "granted", s.events, "add team-a/y", "add team-z/unheard-of")
		s.expectStatus("granted", status.Synced, status.ReasonNone)
		if all := s.factory.Status(); len(all) != 1 {
			s.Errorf("the namespaces are still watched: %+v", all)
		}

		forbid(s.server, widgetsPath)
		s.server.CloseClientConnections()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.countRequests(inNamespace("team-a")) == 0 {
			t.Error("the namespaces were not listed separately")
		}
		s.expectStatus("revoked", status.Synced, status.ReasonNone)
		for _, event := range s.events.take() {
			if !strings.HasPrefix(event, "update ") && event != "gone team-z/unheard-of" {
				s.Errorf("received the unexpected event %q", event)
			}
		}
		if diff := cmp.Diff([]string{"prod/x", "team-a/x", "team-a/y", "team-b/x"},
			keysOf(s.informer)); diff != "" {
			s.Errorf("the keys (-want +got):\n%s", diff)
		}
	})
}

// TestPatternsWithoutClusterWatch verifies that with permission to list but not to watch, the informer does
// not alternate between both ways.
func TestPatternsWithoutClusterWatch(t *testing.T) {
	watchDenied := func(server *apitest.Server) {
		server.Repair()
		server.AddFaults(fault(widgetsPath, "watch", 403), fault(widgetsPath, "watch-list", 403))
	}
	testPatterns(t, teamNamespaces, watchDenied, func(s *patternTest) {
		start(s.T, s.factory)
		expectEvents(s.T, "all at once, then one by one", s.events, "add prod/x", "add team-a/x",
			"add team-b/x",
			"update prod/x", "update team-a/x", "update team-b/x")
		time.Sleep(10 * time.Minute)
		s.expectStatus("later", status.Synced, status.ReasonNone)
		// After a silent watch, the informer requests the server's version with a list of one object.
		versions := count(s.server, "list "+inNamespace("team-a")+"?limit=1")
		if n := s.countRequests(inNamespace("team-a")) - versions; n != 1 {
			s.Errorf("a namespace was listed %d times, want 1", n)
		}
		expectEvents(s.T, "later", s.events)
	})
}

// TestPatternsWithAForbiddenNamespace verifies that a forbidden namespace degrades the status, as with exact
// names.
func TestPatternsWithAForbiddenNamespace(t *testing.T) {
	forbidden := func(server *apitest.Server) { forbid(server, inNamespace("team-b")) }
	testPatterns(t, teamNamespaces, forbidden, func(s *patternTest) {
		start(s.T, s.factory)
		expectEvents(s.T, "one is forbidden", s.events, "add prod/x", "add team-a/x")
		current := s.expectStatus("one is forbidden", status.Degraded, status.ReasonForbidden)
		if !strings.HasPrefix(current.Message, "in team-b: ") || s.informer.HasSynced() {
			s.Errorf("Status() = %+v, want the error of team-b, not synced", current)
		}
		if err := s.server.Client(s.T).Resource(namespacesGVR).Delete(context.Background(), "team-b",
			metav1.DeleteOptions{}); err != nil {
			s.Fatal(err)
		}
		s.expectStatus("it is gone", status.Synced, status.ReasonNone)
	})
}

// TestNamespacesAfterShutdown verifies that no informer waits for namespaces after Shutdown.
func TestNamespacesAfterShutdown(t *testing.T) {
	f := newFactory(t, newServer(t), Options{})
	must(t, f.Shutdown(longContext(t)))
	if _, err := f.namespaces(); !errors.Is(err, ErrShutdown) {
		t.Errorf("namespaces() after Shutdown = %v, want ErrShutdown", err)
	}
}

// TestUnansweredProbe verifies that an unanswered probe of the cluster-wide permission ends, does not block
// lists of other types, and is repeated.
func TestUnansweredProbe(t *testing.T) {
	testPatterns(t, teamNamespaces, nil, func(s *patternTest) {
		start(s.T, s.factory)
		s.expectStatus("refused", status.Synced, status.ReasonNone)
		s.server.RepairPath(widgetsPath)
		s.server.AddFaults(unansweredRequests(widgetsPath))
		s.countRequests(widgetsPath)
		busy := 0
		for range 20 * 60 / 5 {
			time.Sleep(5 * time.Second)
			if held, _, _ := s.factory.deps.Limiter.Load(); held > 0 {
				busy++
			}
		}
		if probes := s.countRequests(widgetsPath); probes < 3 {
			s.Errorf("%d probes in 20 minutes, want at least 3", probes)
		}
		if busy > 20*60/5*9/10 {
			s.Error("probes held the slot for lists more than 90% of the time")
		}
		s.server.RepairPath(widgetsPath)
		time.Sleep(3 * time.Minute)
		s.server.Create(s.T, widgets, widget("team-a", "late"))
		s.expectStatus("granted", status.Synced, status.ReasonNone)
		if count(s.server, "watch-list "+widgetsPath+"?") < 2 { // the first one was denied
			s.Error("all namespaces are not listed at once although that is allowed")
		}
	})
}

// TestVersionOfSeveralNamespaces verifies that the store's version is one that every namespace has reached.
func TestVersionOfSeveralNamespaces(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("a", "x"))
		f := newVirtualFactory(t, server,
			Options{Defaults: ResourceOptions{Namespaces: InNamespaces("a", "b")}})
		i := mustInformer(t, f, widgets)
		start(t, f)
		before := i.LastSyncResourceVersion()
		server.Create(t, widgets, widget("a", "y"))
		synctest.Wait()
		if after := i.LastSyncResourceVersion(); before == "" || after != before ||
			i.LastSyncResourceVersion() != before {
			t.Errorf("after an event of one namespace, the version changed to %q, want %q", after, before)
		}
		server.Create(t, widgets, widget("b", "y"))
		synctest.Wait()
		if after := i.LastSyncResourceVersion(); after == before {
			t.Errorf("after events of all namespaces, the version is still %q", after)
		}
	})
}
