package metrics

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

type labelValues = map[string]string

func expectValue(t *testing.T, read func() (float64, bool), description string, want float64) {
	t.Helper()
	if got, found := read(); !found || got != want {
		t.Errorf("%s = %v (found: %v), want %v", description, got, found, want)
	}
}

// TestCollector causes each kind of event, and reads the metrics from a real handler.
func TestCollector(t *testing.T) {
	s := newServer(t)
	s.apply(t, 0, 20, 1)
	f := newFactory(t, s, dynamicinformer.Options{Persistence: failingBackend{},
		PersistenceInterval: time.Millisecond})
	collector := NewCollector(f, Options{Name: "main"})
	endpoint := exporter(t, collector)

	s.forbidden.Store("/apis/example.com/v1/gadgets")
	h := acquireSynced(t, f, widgets)
	forbidden, err := f.Acquire(gadgets)
	must(t, err)
	awaitStatus(t, forbidden.Informer(), func(s status.Status) bool { return s.State == status.Degraded })
	handler := dynamicinformer.Named("worker", cache.ResourceEventHandlerFuncs{})
	if _, err := h.Informer().AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Informer().Lister().List(labels.Everything()); err != nil {
		t.Fatal(err)
	}
	must(t, h.Informer().Flush(testContext(t)))
	for ctx := testContext(t); h.Informer().Persistence().Saves == 0; runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatalf("timed out waiting for the save: %+v", h.Informer().Persistence())
		}
	}

	got := scrape(t, endpoint)
	for _, want := range []struct {
		name   string
		labels labelValues
		value  float64
	}{
		{"condition", labelValues{"condition": "Ready", "status": "True", "factory": "main"}, 1},
		{"condition", labelValues{"condition": "Ready"}, 1},
		{"condition", labelValues{"status": "False"}, 0},
		{"informers", labelValues{"resource": "widgets", "group": "example.com", "version": "v1", "view": "",
			"state": "Synced", "reason": ""}, 1},
		{"informers", labelValues{"resource": "gadgets", "state": "Degraded", "reason": "Forbidden"}, 1},
		{"informers", labelValues{}, 2},
		{"stale_informers", labelValues{"resource": "widgets"}, 0},
		{"incarnation", labelValues{"resource": "widgets"}, 1},
		{"objects", labelValues{"resource": "widgets"}, 20},
		{"compressed_objects", labelValues{"resource": "widgets"}, 0},
		{"compressed_bytes", labelValues{"resource": "widgets"}, 0},
		{"memory_budget_bytes", labelValues{"factory": "main"}, 0},
		{"memory_compressible_bytes", labelValues{"factory": "main"}, 0},
		{"memory_over_budget_bytes", labelValues{"factory": "main"}, 0},
		{"index_values", labelValues{"resource": "widgets", "index": "namespace"}, 10},
		{"index_entries", labelValues{"resource": "widgets", "index": "namespace"}, 20},
		{"events_total", labelValues{"resource": "widgets", "event": "add"}, 20},
		{"events_total", labelValues{"resource": "widgets", "event": "update"}, 0},
		{"relists_total", labelValues{"resource": "widgets", "reason": "Expired"}, 0},
		{"request_failures_total", labelValues{"resource": "gadgets", "verb": "list", "reason": "Forbidden"}, 1},
		{"list_duration_seconds", labelValues{"resource": "widgets"}, 1},
		{"handler_queue_length", labelValues{"handler": "worker"}, 0},
		{"handler_lag_seconds", labelValues{"handler": "worker"}, 0},
		{"handler_coalesced_events_total", labelValues{"handler": "worker"}, 0},
		{"reads_total", labelValues{"resource": "widgets"}, 20},
	} {
		expectValue(t, func() (float64, bool) { return value(got, want.name, want.labels) },
			fmt.Sprint(want.name, want.labels), want.value)
	}
	for _, positive := range []string{"last_contact_timestamp_seconds", "memory_bytes", "requests_total",
		"last_list_duration_seconds"} {
		if v, _ := value(got, positive, labelValues{"resource": "widgets"}); v <= 0 {
			t.Errorf("%s = %v, want more than 0", positive, v)
		}
	}
	if _, found := value(got, "last_contact_timestamp_seconds", labelValues{"resource": "gadgets"}); found {
		t.Error("the forbidden type has a series for the last contact")
	}
	for _, m := range metricDefinitions {
		if got["crdcache_"+m.name] == nil {
			t.Errorf("the metric %s is missing", m.name)
		}
	}
	problems, err := testutil.CollectAndLint(collector)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}

// TestOmitEmpty verifies that types without objects have no series unless something is wrong with them.
func TestOmitEmpty(t *testing.T) {
	s := newServer(t)
	s.apply(t, 0, 1, 1)
	s.install(t, "empties", "Empty")
	s.forbidden.Store("/apis/example.com/v1/gadgets")
	f, empties := newFactory(t, s, dynamicinformer.Options{}), widgets
	empties.Resource = "empties"
	acquireSynced(t, f, widgets)
	acquireSynced(t, f, empties)
	forbidden, err := f.Acquire(gadgets)
	must(t, err)
	awaitStatus(t, forbidden.Informer(), func(s status.Status) bool { return s.State == status.Degraded })
	got := scrape(t, exporter(t, NewCollector(f, Options{OmitEmpty: true})))
	for resource, want := range map[string]bool{"widgets": true, "gadgets": true, "empties": false} {
		if _, found := value(got, "informers", labelValues{"resource": resource}); found != want {
			t.Errorf("%s have series: %v, want %v", resource, found, want)
		}
	}
}

// TestScrapeDuringWrites scrapes while objects change and informers are created and released. Counters must
// never decrease.
func TestScrapeDuringWrites(t *testing.T) {
	s := newServer(t)
	s.apply(t, 0, 50, 0)
	f := newFactory(t, s, dynamicinformer.Options{Linger: -1})
	endpoint := exporter(t, NewCollector(f))
	i := acquireSynced(t, f, widgets).Informer()
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
		t.Fatal(err)
	}
	const rounds = 30
	var writers sync.WaitGroup
	writers.Go(func() {
		for n := range rounds {
			s.apply(t, 0, 50, n+1)
			s.storage.Delete(widgets.GroupResource(), "tenant-7", "w-7")
		}
	})
	writers.Go(func() {
		for range rounds {
			acquireSynced(t, f, widgets,
				dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces("tenant-3")}).
				Release()
		}
	})
	done := make(chan struct{})
	go func() { // ends with the writers
		defer close(done)
		writers.Wait()
	}()
	previous := map[string]float64{}
	for {
		families := scrape(t, endpoint)
		for name, family := range families {
			for _, m := range family.GetMetric() {
				if m.GetCounter() == nil {
					continue
				}
				key := name + m.String()[:strings.Index(m.String(), "counter:")]
				if now := m.GetCounter().GetValue(); now < previous[key] {
					t.Fatalf("%s decreased from %v to %v", key, previous[key], now)
				}
				previous[key] = m.GetCounter().GetValue()
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// TestSeriesAreDistinct verifies that no two series are equal, for any options, handlers and factories.
func TestSeriesAreDistinct(t *testing.T) {
	s := newServer(t)
	s.apply(t, 0, 20, 1)
	options := dynamicinformer.Options{}
	firstFactory, secondFactory := newFactory(t, s, options), newFactory(t, s, options)
	transform := func(mark string) cache.TransformFunc {
		return func(obj any) (any, error) {
			u := obj.(*unstructured.Unstructured).DeepCopy()
			u.SetAnnotations(labelValues{"mark": mark})
			return u, nil
		}
	}
	for _, view := range []dynamicinformer.ResourceOptions{
		{},
		{Namespaces: dynamicinformer.InNamespaces("tenant-1")},
		{Namespaces: dynamicinformer.InNamespaces("tenant-1", "tenant-2")},
		{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}},
		{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageObject}},
		{Transform: transform("one")},
		{Transform: transform("two")},
	} {
		for range 2 { // two handles with equal options, which share an informer
			h := acquireSynced(t, firstFactory, widgets, view)
			for range 3 { // three handlers of the same Go type
				if _, err := h.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	acquireSynced(t, secondFactory, widgets)
	got := scrape(t, exporter(t, NewCollector(firstFactory), NewCollector(secondFactory, Options{Name: "second"})))
	for view, want := range map[string]float64{
		"": 20, "namespaces: in tenant-1": 2, "namespaces: in tenant-1,tenant-2": 4, "storage: metadata": 20,
		"storage: object": 20, "transformed": 40,
	} {
		labels := labelValues{"view": view, "factory": ""}
		expectValue(t, func() (float64, bool) { return value(got, "objects", labels) }, "objects of "+view, want)
	}
	expectValue(t, func() (float64, bool) { return value(got, "informers", labelValues{"view": "transformed"}) },
		"transformed informers", 2)
	expectValue(t, func() (float64, bool) { return value(got, "objects", labelValues{"factory": "second"}) },
		"objects of the second factory", 20)

	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(firstFactory))
	var already prometheus.AlreadyRegisteredError
	if err := registry.Register(NewCollector(secondFactory)); !errors.As(err, &already) {
		t.Errorf("Register() of a second factory without a name = %v, want AlreadyRegistered", err)
	}
	if !registry.Unregister(NewCollector(firstFactory)) {
		t.Error("Unregister() = false, want true")
	}
}

// registryWithWidgets returns the registry of a factory whose informer has a number of widgets.
func registryWithWidgets(t testing.TB, widgetCount int) *prometheus.Registry {
	s := newServer(t)
	s.apply(t, 0, widgetCount, 1)
	f := newFactory(t, s, dynamicinformer.Options{})
	acquireSynced(t, f, widgets)
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(f))
	return registry
}

// TestScrapeCostsTheSame verifies that the allocations of a scrape do not depend on the number of objects. It
// does not compare times, which depend on the machine.
func TestScrapeCostsTheSame(t *testing.T) {
	allocations := func(objects int) float64 {
		registry := registryWithWidgets(t, objects)
		return testing.AllocsPerRun(20, func() {
			if _, err := registry.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	few, many := allocations(100), allocations(10_000)
	t.Logf("%v allocations for 100 objects, %v for 10,000", few, many)
	if many > few+100 {
		t.Errorf("a scrape makes %v allocations for 100 objects and %v for 10,000, want about as many", few,
			many)
	}
}

// TestHandlersAreBounded verifies that handlers of one name share a series, and so do handlers beyond the
// limit.
func TestHandlersAreBounded(t *testing.T) {
	var all []status.Handler
	for n := range 3 * maxHandlers {
		all = append(all, status.Handler{Name: fmt.Sprint("user ", n), Depth: 1, Lag: time.Duration(n)})
	}
	all = append(all, status.Handler{Name: "user 0", Depth: 5, Lag: time.Hour}, status.Handler{Depth: 1})
	got := limitHandlers(all)
	if len(got) != maxHandlers+1 {
		t.Fatalf("got %d handlers, want maxHandlers and one for the others: %+v", len(got), got)
	}
	if first := got[0]; first.Name != "user 0" || first.Depth != 6 || first.Lag != time.Hour {
		t.Errorf("two handlers of one name: got %+v, want their sum", first)
	}
	if last := got[maxHandlers]; last.Name != othersLabel || last.Depth != 2*maxHandlers+1 ||
		last.Lag != 3*maxHandlers-1 {
		t.Errorf("handlers above the limit: got %+v, want their sum", last)
	}
}

func TestIndexesAreBounded(t *testing.T) {
	var all []status.IndexMetrics
	for n := range maxIndexes + 2 {
		all = append(all, status.IndexMetrics{Name: fmt.Sprint("index ", n), Values: 2, Entries: 3})
	}
	got := limitIndexes(all)
	if last := got[len(got)-1]; len(got) != maxIndexes+1 ||
		last != (status.IndexMetrics{Name: othersLabel, Values: 4, Entries: 6}) {
		t.Errorf("got %d indexes, of which the last is %+v, want the sum of the others", len(got), last)
	}
}

// TestGroupCollector scrapes a group before and after a cluster is removed.
func TestGroupCollector(t *testing.T) {
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{MemoryBudget: 1 << 20})
	must(t, err)
	ctx := testContext(t)
	t.Cleanup(func() {
		if err := group.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	collector := NewGroupCollector(group)
	endpoint := exporter(t, collector)
	for cluster, objects := range map[string]int{"production": 20, "staging": 3} {
		s := newServer(t)
		s.apply(t, 0, objects, 1)
		f, err := group.Add(cluster, dynamicinformer.Options{Config: &rest.Config{Host: s.URL, QPS: -1}})
		must(t, err)
		must(t, f.Start(ctx))
		acquireSynced(t, f, widgets)
	}
	got := scrape(t, endpoint)
	for _, want := range []struct {
		name   string
		labels labelValues
		value  float64
	}{
		{"objects", labelValues{"cluster": "production", "resource": "widgets"}, 20},
		{"objects", labelValues{"cluster": "staging"}, 3},
		{"condition", labelValues{"cluster": "staging", "condition": "Reachable", "status": "True"}, 1},
		{"memory_budget_bytes", labelValues{"cluster": ""}, 1 << 20},
		{"memory_budget_bytes", labelValues{}, 1 << 20},
	} {
		expectValue(t, func() (float64, bool) { return value(got, want.name, want.labels) },
			fmt.Sprint(want.name, want.labels), want.value)
	}
	if problems, err := testutil.CollectAndLint(collector); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	must(t, group.Remove(ctx, "staging"))
	if v, found := value(scrape(t, endpoint), "objects", labelValues{"cluster": "staging"}); found {
		t.Errorf("a removed cluster has %v objects, want no series", v)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
