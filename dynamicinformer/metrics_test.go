package dynamicinformer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

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
			if err != nil {
				t.Fatal(err)
			}
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
		if err != nil {
			t.Fatal(err)
		}
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
