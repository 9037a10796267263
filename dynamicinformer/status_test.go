package dynamicinformer

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/test/testcluster"
)

func TestStatusInOneLine(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for want, status := range map[string]status.Status{
		"widgets.v1.example.com: Synced": {GVR: gvr, State: status.Synced},
		"widgets.v1.example.com (namespace a): Degraded (Forbidden): you may not; stale": {
			GVR: gvr, Options: "namespace a", State: status.Degraded, Reason: status.ReasonForbidden,
			Message: "you may not", Stale: true,
		},
		"widgets.v1.example.com in version v2: Synced": {GVR: gvr, Version: "v2", State: status.Synced},
		"widgets.example.com in version v1: Synced": {GVR: gvr.GroupResource().WithVersion(""),
			Version: "v1", State: status.Synced},
		"pods.v1: Pending": {GVR: schema.GroupVersionResource{Version: "v1",
			Resource: "pods"}, State: status.Pending},
	} {
		if got := fmt.Sprint(status); got != want {
			t.Errorf("String of the status = %q, want %q", got, want)
		}
	}
}

// TestPanickedRoundSetsReason verifies that a type whose lists cause panics is degraded until a watch stays
// open. The test changes process-wide settings and therefore runs alone.
func TestPanickedRoundSetsReason(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		var trouble atomic.Bool
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{
			TweakListOptions: func(schema.GroupVersionResource, *metav1.ListOptions) {
				if trouble.Load() {
					panic("tweak trouble")
				}
			},
		}})
		i := mustInformer(t, f, widgets)
		start(t, f)
		trouble.Store(true)
		server.CloseClientConnections()
		for range 10 {
			time.Sleep(31 * time.Second)
			synctest.Wait()
			if s := i.Status(); s.State != status.Degraded || s.Reason != status.ReasonPanicked || !s.Stale ||
				!strings.Contains(s.Message, "tweak trouble") {
				t.Fatalf("Status() = %+v, want Degraded with reason Panicked", s)
			}
		}
		trouble.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := i.Status(); s.State != status.Synced || s.Reason != status.ReasonNone {
			t.Errorf("afterwards Status() = %+v, want Synced", s)
		}
	})
}

type failingSource struct{ err error }

func (s failingSource) Subscribe(listener typesource.Listener) (stop func()) {
	listener.SetUnknown(map[schema.GroupVersion]error{{}: s.err})
	return func() {}
}

// TestConditionsExplainTheSource verifies that the condition's message contains the error of the source of
// types.
func TestConditionsExplainTheSource(t *testing.T) {
	want := "waiting to learn which types the server has"
	for _, tt := range []struct {
		source typesource.Source
		want   string
	}{{failingSource{errors.New("no\nway")}, want + ": no way"}, {failingSource{}, want}, {&scriptedSource{}, want}} {
		f := newFactory(t, newServer(t), Options{Types: tt.source})
		if c := f.Condition(status.ConditionReachable); c.Status != metav1.ConditionUnknown {
			t.Errorf("%T: without a request, Reachable is %+v, want Unknown", tt.source, c)
		}
		for _, c := range f.Conditions() {
			if (c.Type == status.ConditionReady || c.Type == status.ConditionTypesKnown) &&
				c.Message != tt.want {
				t.Errorf("%T: the message of %s is %q, want %q", tt.source, c.Type, c.Message, tt.want)
			}
			if other := f.Condition(c.Type); other != c {
				t.Errorf("Condition() = %+v, Conditions() has %+v", other, c)
			}
		}
	}
	refused := &url.Error{Op: "Get", URL: "https://example.com", Err: errors.New("connection refused")}
	for cause, affected := range map[error]status.ConditionType{refused: status.ConditionReachable,
		apierrors.NewUnauthorized("expired"): status.ConditionAuthenticated} {
		changes := make(chan status.Condition, 10)
		f := newFactory(t, newServer(t), Options{Types: failingSource{cause}, Listener: status.Listener{
			ConditionChanged: func(_, after status.Condition) { changes <- after }}})
		c := <-changes
		for c.Type != affected || c.Status != metav1.ConditionFalse {
			c = <-changes
		}
		if c != f.Condition(affected) || c.Since.IsZero() || !strings.Contains(cause.Error(), c.Message) {
			t.Errorf("while the source fails with %v, the condition is %+v, the event has %+v", cause,
				f.Condition(affected), c)
		}
	}
}

// TestQuietTypesRecover verifies that after an outage of any length, the status of a type without events and
// bookmarks is healthy as soon as its watch has been open for the minimum time.
func TestQuietTypesRecover(t *testing.T) {
	closes := testcluster.Close("")
	for name, tt := range map[string]struct {
		reason status.Reason
		broken []apitest.Fault
	}{
		"failing":   {status.ReasonRequestFailed, []apitest.Fault{{Status: 503}}},
		"throttled": {status.ReasonThrottled, []apitest.Fault{{Status: 429}}},
		"not found": {status.ReasonNotFound, []apitest.Fault{{Status: 404}}},
		"forbidden": {status.ReasonForbidden, []apitest.Fault{{Status: 403}}},
		"only watches failing": {status.ReasonRequestFailed, []apitest.Fault{{Verb: "watch", Status: 500},
			{Verb: "watch-list", Status: 500}}},
		"closed at once": {status.ReasonWatchClosed, []apitest.Fault{{Verb: "watch", Effect: closes},
			{Verb: "watch-list", Effect: closes}}},
	} {
		for _, outage := range []time.Duration{2 * health.ContactTimeout, 10 * time.Minute} {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, widget("web", "a"))
				f := newVirtualFactory(t, server, Options{})
				i := mustInformer(t, f, widgets)
				start(t, f)
				time.Sleep(time.Minute) // a watch that ends early would be another failure
				for _, f := range tt.broken {
					f.Path = widgetsPath
					server.AddFaults(f)
				}
				server.CloseClientConnections()
				observe(t, i, name+", for "+outage.String(), outage, briefStatus{status.Degraded, tt.reason, true})
				before := len(server.Requests())
				server.Repair()
				watched := func() bool {
					return slices.ContainsFunc(server.Requests()[before:],
						func(r string) bool { return strings.HasPrefix(r, "watch "+widgetsPath+"?") })
				}
				for repaired := time.Now(); !watched() &&
					time.Since(repaired) < 10*time.Minute; synctest.Wait() {
					time.Sleep(100 * time.Millisecond)
				}
				observe(t, i, name+", watched again", requests.ShortWatch, briefStatus{State: status.Synced})
			})
		}
	}
}

func singleTypeMetrics(t *testing.T, f *Factory) status.Metrics {
	t.Helper()
	all := f.Metrics()
	if len(all) != 1 {
		t.Fatalf("%d informers have metrics, want 1: %+v", len(all), all)
	}
	return all[0]
}

// TestCountersOutliveInformers verifies that the counters never decrease while a type is released and
// acquired again.
func TestCountersOutliveInformers(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{Linger: -1})
		start(t, f)
		var last status.Counters
		checkCounters := func() {
			for _, m := range f.Metrics() {
				if m.Adds < last.Adds || m.Lists < last.Lists || m.Requests["list"] < last.Requests["list"] {
					t.Errorf("counters decreased from %+v to %+v", last, m.Counters)
				}
				last = m.Counters
			}
		}
		const rounds = 5
		for range rounds {
			h := acquire(t, f, widgets)
			checkCounters()
			observe(t, h.Informer(), "acquired", time.Minute, briefStatus{State: status.Synced})
			checkCounters()
			h.Release()
			checkCounters()
			<-h.Informer().Stopped()
			synctest.Wait()
			if remaining := f.Metrics(); len(remaining) != 0 {
				t.Errorf("released informers still have metrics: %+v", remaining)
			}
		}
		h := acquire(t, f, widgets)
		observe(t, h.Informer(), "acquired", time.Minute, briefStatus{State: status.Synced})
		if m := singleTypeMetrics(t, f); m.Adds != rounds+1 || m.Lists != rounds+1 || m.Objects != 1 ||
			len(m.Status) != 1 {
			t.Errorf("after %d rounds: %+v, want one add and list per round", rounds, m)
		}
	})
}

// TestEqualDescriptionsShareMetrics verifies that two informers whose options differ only in the transform
// share metrics.
func TestEqualDescriptionsShareMetrics(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		start(t, f)
		transform := func(mark string) cache.TransformFunc {
			return func(obj any) (any, error) {
				u := obj.(*unstructured.Unstructured).DeepCopy()
				u.SetAnnotations(map[string]string{"mark": mark})
				return u, nil
			}
		}
		for _, mark := range []string{"one", "two"} {
			h, err := f.Acquire(widgets, ResourceOptions{Transform: transform(mark)})
			must(t, err)
			observe(t, h.Informer(), mark, time.Minute, briefStatus{State: status.Synced})
		}
		m := singleTypeMetrics(t, f)
		if m.Options != "transformed" || len(m.Status) != 2 || m.Objects != 2 || m.Adds != 2 ||
			m.Indexes[0].Entries != 2 {
			t.Errorf("Metrics() = %+v, want the sum of two informers", m)
		}
	})
}

// TestEndedCountersAreBounded verifies that the factory keeps the counters of a limited number of stopped
// informers.
func TestEndedCountersAreBounded(t *testing.T) {
	f := newFactory(t, newServer(t), Options{Linger: -1})
	for n := range maxEndedCounters + 100 {
		h, err := f.Acquire(schema.GroupVersionResource{Group: "example.com", Version: "v1",
			Resource: fmt.Sprint("type", n)})
		must(t, err)
		h.Release()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.mu.endedCounters) != maxEndedCounters {
		t.Errorf("the counters of %d stopped informers are stored, want the maximum", len(f.mu.endedCounters))
	}
}

// TestMetricsCount causes each counted event once, and verifies the counters.
func TestMetricsCount(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"), widget("web", "b"))
		server.AddFaults(fault(widgetsPath, "", 500))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		if _, err := i.AddEventHandler(Named("worker", cache.ResourceEventHandlerFuncs{})); err != nil {
			t.Fatal(err)
		}
		start(t, f)
		synctest.Wait()
		failed := singleTypeMetrics(t, f)
		if got := failed.Failures[status.RequestFailureKind{Verb: "list",
			Reason: status.ReasonRequestFailed}]; got != 1 || failed.Requests["list"] != 1 {
			t.Errorf("after a failed list: %+v, want one failure", failed.Counters)
		}
		server.Repair()
		observe(t, i, "repaired", time.Minute, briefStatus{State: status.Synced})
		changed := widget("web", "a")
		changed.SetLabels(map[string]string{"changed": "true"})
		server.Update(t, widgets, changed)
		server.Delete(t, widgets, "web", "b")
		server.Create(t, widgets, widget("db", "c"))
		synctest.Wait()
		if _, err := i.Lister().ByNamespace("db").Get("c"); err != nil {
			t.Fatal(err)
		}
		server.AddFaults(fault(widgetsPath, "watch", 410))
		server.CloseClientConnections()
		synctest.Wait()
		server.Repair()
		observe(t, i, "relisted", time.Minute, briefStatus{State: status.Synced})

		m := singleTypeMetrics(t, f)
		got := m.Counters
		if got.Adds != 3 || got.Updates != 1 || got.Deletes != 1 {
			t.Errorf("events: %+v, want 3 adds, 1 update, 1 delete", got)
		}
		if got.Relists != (status.Relists{Expired: 1}) || got.Relists != i.Status().Relists {
			t.Errorf("relists: %+v, in the status %+v; want one because of Expired", got.Relists,
				i.Status().Relists)
		}
		if got.Lists != 2 || got.Hits+got.Misses == 0 {
			t.Errorf("%d lists, %d hits, %d misses; want 2 lists and some reads", got.Lists, got.Hits,
				got.Misses)
		}
		sent := map[string]int64{}
		for verb, n := range got.Requests {
			sent[verb] = n
		}
		want := map[string]int64{}
		for _, r := range server.Requests() {
			var verb, path string
			if _, err := fmt.Sscan(r, &verb, &path); err != nil {
				t.Fatal(err)
			}
			if verb == "list" || verb == "watch" || verb == "watch-list" {
				want[verb]++
			}
		}
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("requests (-sent +counted):\n%s", diff)
		}
		if m.Objects != 2 || m.ObjectBytes == 0 || m.TableBytes == 0 || m.IndexBytes == 0 {
			t.Errorf("sizes: %+v, want all above 0", m)
		}
		if diff := cmp.Diff([]status.IndexMetrics{{Name: cache.NamespaceIndex, Values: 2, Entries: 2}},
			m.Indexes); diff != "" {
			t.Errorf("indexes (-want +got):\n%s", diff)
		}
		if len(m.Handlers) != 1 || m.Handlers[0].Name != "worker" || len(m.Status) != 1 ||
			m.Status[0].State != status.Synced {
			t.Errorf("handlers %+v, status %+v; want the handler worker and Synced", m.Handlers, m.Status)
		}
	})
}
