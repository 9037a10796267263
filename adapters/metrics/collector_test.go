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
	if err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, forbidden.Informer(), func(s status.Status) bool { return s.State == status.Degraded })
	handler := dynamicinformer.Named("worker", cache.ResourceEventHandlerFuncs{})
	if _, err := h.Informer().AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Informer().Lister().List(labels.Everything()); err != nil {
		t.Fatal(err)
	}
	if err := h.Informer().Flush(testContext(t)); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
