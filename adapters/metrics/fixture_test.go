package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
)

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
)

// server is an API server of widgets and gadgets.
type server struct {
	*httptest.Server
	storage   *apiserver.Storage
	forbidden atomic.Value // the path of requests that get 403
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{storage: apiserver.NewStorage(apiserver.StorageOptions{})}
	s.install(t, "widgets", "Widget")
	s.install(t, "gadgets", "Gadget")
	handler := readapi.NewHandler(s.storage, readapi.HandlerOptions{})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == s.forbidden.Load() {
			readapi.WriteError(w, r, readapi.NewStatusError(http.StatusForbidden, "", "no gadgets"))
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) install(t testing.TB, plural, kind string) {
	t.Helper()
	err := s.storage.SetType(readapi.Type{
		Group: "example.com", Names: crd.Names{Plural: plural, Kind: kind}, Namespaced: true,
		Versions: []readapi.Version{{Name: "v1"}},
	})
	must(t, err)
}

func applyJSON(t testing.TB, storage *apiserver.Storage, text []byte) {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, u.UnmarshalJSON(text))
	if _, err := storage.Apply(u); err != nil {
		t.Fatal(err)
	}
}

// apply stores the widgets with the numbers from to to-1 in ten namespaces. version is in their .spec.
func (s *server) apply(t testing.TB, from, to, version int) {
	t.Helper()
	for n := from; n < to; n++ {
		text := fmt.Appendf(nil,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"tenant-%d","name":"w-%d"},`+
				`"spec":{"version":%d}}`, n%10, n, version)
		applyJSON(t, s.storage, text)
	}
}

// testContext returns a context that ends long after any test.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newFactory returns a factory that runs until the end of the test.
func newFactory(t testing.TB, s *server, options dynamicinformer.Options) *dynamicinformer.Factory {
	t.Helper()
	ctx := testContext(t)
	options.Config = &rest.Config{Host: s.URL, QPS: -1}
	f, err := dynamicinformer.New(options)
	must(t, err)
	t.Cleanup(func() {
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	must(t, f.Start(ctx))
	return f
}

// acquireSynced returns a handle to the informer of a type that has synced.
func acquireSynced(t testing.TB, f *dynamicinformer.Factory, gvr schema.GroupVersionResource,
	options ...dynamicinformer.ResourceOptions) *dynamicinformer.Handle {
	t.Helper()
	h, err := f.Acquire(gvr, options...)
	must(t, err)
	must(t, h.WaitForSync(testContext(t)))
	return h
}

func awaitStatus(t testing.TB, i *dynamicinformer.Informer, matches func(status.Status) bool) {
	t.Helper()
	ctx := testContext(t)
	for {
		status, changed := i.StatusChange()
		if matches(status) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("timed out waiting for another status than %v", status)
		}
	}
}

// exporter serves the metrics of collectors as a program does.
func exporter(t testing.TB, collectors ...prometheus.Collector) *httptest.Server {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		must(t, registry.Register(c))
	}
	s := httptest.NewServer(promhttp.HandlerFor(registry,
		promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	t.Cleanup(s.Close)
	return s
}

// scrape returns the metrics of an exporter by name.
func scrape(t testing.TB, s *httptest.Server) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := http.Get(s.URL)
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the scrape failed: %s", response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	must(t, err)
	return families
}

// value adds up the series with these labels. It returns false if there are no such series.
func value(families map[string]*dto.MetricFamily, name string,
	labels map[string]string) (sum float64, found bool) {
	for _, m := range families["crdcache_"+name].GetMetric() {
		values := map[string]string{}
		for _, pair := range m.GetLabel() {
			values[pair.GetName()] = pair.GetValue()
		}
		matches := true
		for k, v := range labels {
			matches = matches && values[k] == v
		}
		if matches {
			found = true
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() +
				float64(m.GetSummary().GetSampleCount())
		}
	}
	return sum, found
}

// failingBackend stores nothing. Open returns err.
type failingBackend struct{ err error }

func (f failingBackend) Open(context.Context, persistence.View) (persistence.StoredContent, error) {
	return f, f.err
}

func (f failingBackend) Load(context.Context,
	func(persistence.Checkpoint, persistence.LoadFunc) error) error {
	return nil
}

func (f failingBackend) Save(_ context.Context, _ persistence.Checkpoint, _ bool,
	write func(persistence.PutRecord) error) error {
	return write(func(_, _ []byte) error { return nil })
}

func (f failingBackend) NeedsRewrite() bool { return false }

func (f failingBackend) Close() error { return nil }

// TestPersistence verifies the metrics for content that is saved, content whose save fails, and content that
// is not persisted. Shutdown saves the remaining changes.
func TestPersistence(t *testing.T) {
	s := newServer(t)
	s.apply(t, 0, 20, 1)
	startTime := float64(time.Now().UnixNano()) / 1e9
	for name, test := range map[string]struct {
		backend persistence.Backend
		want    map[string]float64 // by state
	}{
		"kept": {failingBackend{}, map[string]float64{"Saved": 1, "Waiting": 0, "Failing": 0}},
		"failing": {failingBackend{err: errors.New("the disk is full")},
			map[string]float64{"Saved": 0, "Waiting": 0, "Failing": 1}},
		"not kept": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFactory(t, s, dynamicinformer.Options{Persistence: test.backend,
				PersistenceInterval: time.Hour})
			acquireSynced(t, f, widgets)
			must(t, f.Shutdown(testContext(t)))
			got := scrape(t, exporter(t, NewCollector(f)))
			for state, want := range test.want {
				expectValue(t, func() (float64, bool) {
					return value(got, "persisted_informers", labelValues{"state": state})
				}, state, want)
			}
			saved, found := value(got, "last_save_timestamp_seconds", nil)
			if found != (test.want["Saved"] == 1) || found && saved < startTime {
				t.Errorf("time of the last save = %v (found: %v)", saved, found)
			}
			saves, found := value(got, "saves_total", nil)
			if found != (test.backend != nil) || saves != test.want["Saved"] {
				t.Errorf("number of saves = %v (found: %v)", saves, found)
			}
			if failures, _ := value(got, "save_failures_total",
				nil); (failures > 0) != (test.want["Failing"] == 1) {
				t.Errorf("number of failures = %v, want some only for the failing backend", failures)
			}
		})
	}
}
