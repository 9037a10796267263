package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/discovery/crd"
)

// runTracker starts a tracker and stops it at the end of the test, which fails if the tracker does not end.
func runTracker(t testing.TB, tracker *Tracker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }() // ends with ctx
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return stop
}

func workspaceCRD(uid string, change ...func(*crd.Definition)) *crd.Definition {
	return definition("ws", uid, change...)
}

func TestTrackerFollowsCRDs(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	server.put(crdPath, crdObjectOf(workspaceCRD("1")))
	tracker := server.tracker(t, TrackerOptions{})
	runTracker(t, tracker)
	earlyListener := listen(t, tracker)
	if err := tracker.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := earlyListener.awaitEvent(syncedText); !slices.Contains(got, "Added ws.example.com 1") ||
		!slices.Contains(got, "Added pods") {
		t.Errorf("events before the sync: %v, want all types", got)
	}
	server.discovery.takeRequests()

	server.put(crdPath, crdObjectOf(workspaceCRD("1",
		func(d *crd.Definition) { d.Versions = append(d.Versions, crd.Version{Name: "v2", Served: true}) })))
	earlyListener.awaitEvent("Changed ws.example.com 1")
	server.put(crdPath, crdObjectOf(workspaceCRD("2", func(d *crd.Definition) { d.Namespaced = false })))
	if diff := cmp.Diff([]string{"Removed ws.example.com 1", "Added ws.example.com 2"},
		earlyListener.awaitEvent("Added ws.example.com 2")); diff != "" {
		t.Errorf("another UID (-want +got):\n%s", diff)
	}
	got, ok := tracker.Snapshot().Lookup(schema.GroupResource{Group: "example.com", Resource: "ws"})
	if !ok || got.Scope != Cluster || got.Source != FromCRD {
		t.Errorf("the snapshot has %+v, want a cluster-scoped type from a CRD", got)
	}
	res, err := tracker.Snapshot().Catalog().Resolve("Kws")
	if err != nil || res.Resources[0].CRDUID != "2" || res.Resources[0].Scope != Cluster {
		t.Errorf("Resolve() = %+v, %v, want UID 2 and cluster scope", res, err)
	}

	late := listen(t, tracker)
	if got := late.awaitEvent(syncedText); len(got) != tracker.Snapshot().Len()+1 {
		t.Errorf("a late listener got %d events, want one for each of %d types and Synced", len(got),
			tracker.Snapshot().Len())
	}
	server.remove(crdPath, "ws.example.com")
	earlyListener.awaitEvent("Removed ws.example.com 2")
	late.awaitEvent("Removed ws.example.com 2")
	if requests := server.discovery.takeRequests(); len(requests) != 0 {
		t.Errorf("CRD events caused discovery requests: %v", requests)
	}
	if s := tracker.Status(); s.Mode != Watching || !s.Synced || s.Types != tracker.Snapshot().Len() {
		t.Errorf("Status() = %+v, want Watching, synced", s)
	}
}

// TestTrackerAssumes verifies that a tracker reports assumed types before Run, and that it then removes those
// that the server does not serve. Only those with a CRD that is gone are known to be deleted.
func TestTrackerAssumes(t *testing.T) {
	server := newTypeServer(t, append(sampleGroups(), oneGroup("example.com", "ws", "lagging", "same"))...)
	for name, uid := range map[string]string{"ws": "2", "same": "3"} {
		server.put(crdPath, crdObjectOf(definition(name, uid)))
	}
	server.put(crdPath, map[string]any{"metadata": map[string]any{"name": "odd.example.com", "uid": "6"}, "spec": 1})
	tracker := server.tracker(t, TrackerOptions{})
	deleted := make(chan string, 100)
	tracker.Subscribe(func(e Event) {
		if e.Action == Removed {
			deleted <- fmt.Sprint(e.Type.GroupResource.Resource, " ", e.Type.UID, " ", e.Deleted)
		}
	})
	listener := listen(t, tracker)
	assume := func(plural, version string, uid types.UID) {
		var definition *metav1.PartialObjectMetadata
		if uid != "" {
			definition = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		}
		kind := schema.GroupVersionKind{Group: "example.com", Version: version, Kind: plural}
		tracker.Assume(&meta.RESTMapping{Resource: kind.GroupVersion().WithResource(plural),
			GroupVersionKind: kind, Scope: meta.RESTScopeNamespace}, definition)
	}
	for plural, uid := range map[string]types.UID{"ws": "1", "same": "", "lagging": "4", "gone": "5", "aggregated": "",
		"odd": "6"} {
		assume(plural, "v1", "")
		listener.awaitEvent("Added " + plural + ".example.com")
		assume(plural, "v1", uid)
		assume(plural, "v2", "")
		listener.awaitEvent(strings.TrimSpace("Changed " + plural + ".example.com " + string(uid)))
	}
	if found, _ := tracker.Snapshot().Lookup(schema.GroupResource{Group: "example.com", Resource: "ws"}); !slices.Equal(
		found.ServedVersions(), []string{"v1", "v2"}) {
		t.Errorf("the assumed versions are %q, want both", found.ServedVersions())
	}
	runTracker(t, tracker)
	listener.awaitEvent(syncedText)
	got := []string{<-deleted, <-deleted, <-deleted, <-deleted}
	slices.Sort(got) // discovery still lists lagging; odd has a CRD that cannot be decoded
	if want := []string{"aggregated  false", "gone 5 true", "lagging 4 true", "ws 1 true"}; !slices.Equal(got, want) {
		t.Errorf("removed %q, want %q", got, want)
	}
	assume("ws", "v3", "9")
	if found, _ := tracker.Snapshot().Lookup(schema.GroupResource{Group: "example.com", Resource: "ws"}); found.UID != "2" {
		t.Errorf("the UID is %q after the sync, want that of the server", found.UID)
	}
	server.discovery.changeGroups(func(groups *[]group, _ map[string]int) {
		(*groups)[len(*groups)-1] = oneGroup("example.com", "ws", "same", "late")
	})
	assume("late", "v1", "")
	listener.awaitEvent("Added late.example.com")
}

// TestTrackerOfARestoredServer verifies that after a restore from a backup, CRDs created after the backup are
// removed, deleted CRDs exist again, and the tracker follows later changes.
func TestTrackerOfARestoredServer(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	server.put(crdPath, crdObjectOf(workspaceCRD("1")))
	restore := server.saveState()
	tracker := server.tracker(t, TrackerOptions{})
	runTracker(t, tracker)
	listener := listen(t, tracker)
	listener.awaitEvent(syncedText)
	for _, name := range []string{"as", "bs", "cs"} {
		server.put(crdPath, crdObjectOf(definition(name, "lost")))
		listener.awaitEvent("Added " + name + ".example.com lost")
	}
	server.remove(crdPath, "ws.example.com")
	listener.awaitEvent("Removed ws.example.com 1")
	restore()
	server.endWatches()
	restored := listener.awaitEvent("Added ws.example.com 1")
	for _, name := range []string{"as", "bs", "cs"} {
		if !slices.Contains(restored, "Removed "+name+".example.com lost") {
			t.Errorf("%s was not removed by the events %v", name, restored)
		}
	}
	server.put(crdPath, crdObjectOf(definition("ds", "1")))
	listener.awaitEvent("Added ds.example.com 1")
}

func TestTrackerFollowsAPIServices(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	tracker := server.tracker(t, TrackerOptions{})
	runTracker(t, tracker)
	listener := listen(t, tracker)
	listener.awaitEvent(syncedText)
	// Local APIServices, for CRDs and built-in types, must cause no discovery.
	server.discovery.takeRequests()
	server.put(apiServicePath, apiServiceObject("v1.example.com", "1", false))
	server.put(crdPath, crdObjectOf(workspaceCRD("1")))
	listener.awaitEvent("Added ws.example.com 1")
	if requests := server.discovery.takeRequests(); len(requests) != 0 {
		t.Errorf("a local APIService caused the requests %v", requests)
	}

	server.discovery.changeGroups(func(groups *[]group, _ map[string]int) {
		*groups = append(*groups, oneGroup("agg.io", "as"))
	})
	server.put(apiServicePath, apiServiceObject("v1.agg.io", "1", true))
	listener.awaitEvent("Added as.agg.io")
	server.discovery.changeGroups(func(groups *[]group,
		_ map[string]int) {
		*groups = (*groups)[:len(*groups)-1]
	})
	server.remove(apiServicePath, "v1.agg.io")
	listener.awaitEvent("Removed as.agg.io")
}

// TestTrackerRetriesDiscovery verifies that the tracker finds the types of a new APIService whose group is
// missing or fails in discovery at first, without another change or poll.
func TestTrackerRetriesDiscovery(t *testing.T) {
	for name, late := range map[string]*group{
		"absent": nil, "stale": {Name: "agg.io", Versions: []groupVersion{{Name: "v1", Stale: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newTypeServer(t, sampleGroups()...)
			tracker := server.tracker(t, TrackerOptions{PollInterval: time.Hour})
			runTracker(t, tracker)
			listener := listen(t, tracker)
			listener.awaitEvent(syncedText)
			if late != nil {
				server.discovery.changeGroups(func(groups *[]group,
					_ map[string]int) {
					*groups = append(*groups, *late)
				})
			}
			server.discovery.takeRequests()
			server.put(apiServicePath, apiServiceObject("v1.agg.io", "1", true))
			for len(server.discovery.takeRequests()) == 0 {
				runtime.Gosched()
			}
			server.discovery.changeGroups(func(groups *[]group, _ map[string]int) {
				*groups = append(sampleGroups(), oneGroup("agg.io", "as"))
			})
			listener.awaitEvent("Added as.agg.io")
		})
	}
}

func TestTrackerWithoutRights(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	server.mu.failWith[crdPath] = http.StatusForbidden
	server.mu.failWith[apiServicePath] = http.StatusForbidden
	tracker := server.tracker(t, TrackerOptions{BlindPollInterval: time.Millisecond})
	runTracker(t, tracker)
	listener := listen(t, tracker)
	listener.awaitEvent(syncedText)
	if s := tracker.Status(); s.Mode != Polling || !s.CRDs.Unavailable || s.CRDs.LastError == nil ||
		!s.APIServices.Unavailable {
		t.Errorf("Status() = %+v, want Polling with unavailable sources", s)
	}
	server.discovery.changeGroups(func(groups *[]group, _ map[string]int) {
		*groups = append(*groups, oneGroup("example.com", "ws"))
	})
	listener.awaitEvent("Added ws.example.com")
	server.put(crdPath, crdObjectOf(workspaceCRD("1")))
	server.mu.Lock()
	delete(server.mu.failWith, crdPath)
	server.mu.Unlock()
	listener.awaitEvent("Changed ws.example.com 1")
	if s := tracker.Status(); s.Mode != Watching || s.CRDs.Unavailable {
		t.Errorf("after the permission was granted, Status() = %+v, want Watching", s)
	}
}

// TestTrackerConfirmsMassRemoval returns one list without CRDs. The tracker must not remove their types,
// because the next list has them again.
func TestTrackerConfirmsMassRemoval(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	for _, d := range definitions(10) {
		server.put(crdPath, crdObjectOf(d))
	}
	tracker := server.tracker(t, TrackerOptions{})
	runTracker(t, tracker)
	listener := listen(t, tracker)
	listener.awaitEvent(syncedText)
	server.waitForLists(t, 1)
	server.mu.Lock()
	server.mu.emptyCRDLists = 1
	lists := server.mu.listCounts[crdPath]
	server.mu.Unlock()
	// An expired watch makes the reflector list again.
	server.expire()
	server.waitForLists(t, lists+2)
	server.put(crdPath, crdObjectOf(workspaceCRD("1")))
	if diff := cmp.Diff([]string{"Added ws.example.com 1"}, listener.awaitEvent("Added ws.example.com 1")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestTrackerKeepsUnreadableCRDs verifies that a CRD that cannot be decoded is reported, affects no others,
// and does not count as absent.
func TestTrackerKeepsUnreadableCRDs(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	unreadableObject := func(name, uid string) map[string]any {
		return map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": name, "uid": uid}, "spec": map[string]any{"versions": "none"},
		}
	}
	server.put(crdPath, unreadableObject("odd.example.com", "o"))
	server.put(crdPath, crdObjectOf(workspaceCRD("1")))
	tracker := server.tracker(t, TrackerOptions{})
	runTracker(t, tracker)
	listener := listen(t, tracker)
	if got := listener.awaitEvent(syncedText); !slices.Contains(got, "Added ws.example.com 1") {
		t.Errorf("got the events %v, want Added of the readable CRD", got)
	}
	server.waitForLists(t, 1)
	server.mu.Lock()
	lists := server.mu.listCounts[crdPath]
	server.mu.Unlock()
	server.put(crdPath, unreadableObject("ws.example.com", "1"))
	server.expire()
	server.waitForLists(t, lists+1)
	server.put(crdPath, crdObjectOf(definition("zs", "z")))
	if diff := cmp.Diff([]string{"Added zs.example.com z"}, listener.awaitEvent("Added zs.example.com z")); diff != "" {
		t.Errorf("after a list with unreadable CRDs (-want +got):\n%s", diff)
	}
	if err := tracker.Status().CRDs.LastError; err == nil || !strings.Contains(err.Error(),
		"ws.example.com") || !strings.Contains(err.Error(), "odd.example.com") {
		t.Errorf("LastError = %v, want both unreadable CRDs", err)
	}
	server.remove(crdPath, "ws.example.com")
	listener.awaitEvent("Removed ws.example.com 1")
	server.remove(crdPath, "odd.example.com")
	server.put(crdPath, crdObjectOf(definition("ys", "y")))
	listener.awaitEvent("Added ys.example.com y")
	if err := tracker.Status().CRDs.LastError; err != nil {
		t.Errorf("LastError without unreadable CRDs = %v, want nil", err)
	}
}

func TestStopFromHandler(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	tracker := server.tracker(t, TrackerOptions{})
	runTracker(t, tracker)
	if err := tracker.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := 0
	self := make(chan *Subscription, 1)
	s := tracker.Subscribe(func(Event) {
		calls++
		own := <-self
		own.Stop()
		own.Stop()
		self <- own
	})
	self <- s
	<-s.Done()
	if calls != 1 {
		t.Errorf("%d calls, want 1 because the first one calls Stop", calls)
	}
}

func TestTrackerEnds(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	before := goroutines()
	tracker := server.tracker(t, TrackerOptions{})
	stop := runTracker(t, tracker)
	l := listen(t, tracker)
	l.awaitEvent(syncedText)
	stop()
	if err := tracker.Run(t.Context()); err == nil {
		t.Error("the second Run() succeeded, want an error")
	}
	<-tracker.Subscribe(func(Event) { t.Error("a listener got an event after Run has returned") }).Done()
	for deadline := time.Now().Add(2 * time.Minute); goroutines() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("goroutines left:\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}

// goroutines counts the goroutines of this module and client-go.
func goroutines() int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "tools/cache") || strings.Contains(g, "discovery.(*Tracker)") ||
			strings.Contains(g, "discovery.(*Subscription)") {
			n++
		}
	}
	return n
}

func TestTrackerWithServerDown(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	tracker := server.tracker(t, TrackerOptions{})
	server.Close()
	stop := runTracker(t, tracker)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- tracker.WaitForSync(ctx) }() // ends with ctx
	// Wait until the first failure is recorded.
	for tracker.Status().CRDs.LastError == nil || tracker.Status().Discovery.LastError == nil {
		runtime.Gosched()
	}
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("WaitForSync() = %v, want context.Canceled with the server's error", err)
	}
	if s := tracker.Status(); s.Mode != Starting || s.Synced {
		t.Errorf("Status() = %+v, want Starting, not synced", s)
	}
	stop() // waits for the end of Run
}

// expire ends the CRD watches with 410 Gone.
func (s *typeServer) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, path := range s.mu.watchers {
		if path == crdPath {
			c <- watchEvent{Type: "ERROR", Object: map[string]any{
				"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
			}}
			delete(s.mu.watchers, c)
		}
	}
}

// waitForLists waits until the CRDs were listed n times and are watched again.
func (s *typeServer) waitForLists(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; runtime.Gosched() {
		s.mu.Lock()
		watching := false
		for _, path := range s.mu.watchers {
			watching = watching || path == crdPath
		}
		done := s.mu.listCounts[crdPath] >= n && watching
		s.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the CRDs were not listed %d times", n)
		}
	}
}
