package controllerruntime

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestMetrics verifies that metrics are registered from Start to the end of its context, under the host of
// the cluster.
func TestMetrics(t *testing.T) {
	server := newServer(t)
	registry := prometheus.NewPedanticRegistry()
	var stops []func()
	for range 2 {
		c := newCache(t, server, cache.Options{}, Options{Metrics: registry, Types: fixedTypes(allTypes)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }() // ended by cancel
		<-c.started
		must(t, c.List(t.Context(), &corev1.ConfigMapList{}))
		stops = append(stops, func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	host := strings.TrimPrefix(server.URL, "http://")
	if got := factoryLabels(t, registry); !slices.Equal(got, []string{host, host + " (2)"}) {
		t.Errorf("the metrics have the factories %q, want two", got)
	}
	for _, stop := range stops {
		stop()
	}
	if got := factoryLabels(t, registry); len(got) != 0 {
		t.Errorf("after the caches ended, the metrics have the factories %q, want none", got)
	}
}

// factoryLabels returns the values of the label "factory".
func factoryLabels(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	seen := map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := ""
			for _, label := range m.GetLabel() {
				if label.GetName() == "factory" {
					name = label.GetValue()
				}
			}
			seen[name] = true
		}
	}
	var all []string
	for name := range seen {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// blockedQueue is a queue whose AddWithOpts blocks until it is released.
type blockedQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	released chan struct{}
}

func (q blockedQueue) AddWithOpts(priorityqueue.AddOpts, ...reconcile.Request) { <-q.released }

// TestKeyHandlersCoalesce verifies that waiting events are merged for a source that queues keys, and for a
// handler wrapped in Coalesce. Other handlers get every event.
func TestKeyHandlersCoalesce(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	informer, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)
	released := make(chan struct{})
	defer close(released)
	slow := toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-released },
		UpdateFunc: func(any, any) {}}
	for _, handler := range []toolscache.ResourceEventHandler{slow, dynamicinformer.Coalesce(slow)} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	}
	kind := source.Kind[client.Object](c, &corev1.ConfigMap{}, &handler.EnqueueRequestForObject{})
	must(t, kind.Start(t.Context(), blockedQueue{released: released}))
	eventually(t, "three handlers", func() bool { return len(c.Factory().Informers()[0].Handlers()) == 3 })
	for n := range 4 {
		server.Update(t, configMaps, configMap("web", "a", "n", strconv.Itoa(n)))
	}
	eventually(t, "the last update", func() bool {
		var object corev1.ConfigMap
		return c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, &object) == nil &&
			object.Data["n"] == "3"
	})
	var depths []int
	for _, h := range c.Factory().Informers()[0].Handlers() {
		depths = append(depths, h.Depth)
	}
	if diff := cmp.Diff([]int{5, 2, 2}, depths); diff != "" {
		t.Errorf("events that wait (-want +got):\n%s", diff)
	}
}

func eventually(t *testing.T, condition string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", condition)
		}
	}
}

// TestManyNames verifies that any number of caches can register metrics under one name, and that names are
// reused.
func TestManyNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	newCollector := func(name string) prometheus.Collector {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "g", ConstLabels: prometheus.Labels{"factory": name}})
	}
	if err := registry.Register(newCollector("a (3)")); err != nil { // like a collector of another package
		t.Fatal(err)
	}
	var second func()
	for n := range 150 {
		unregister, err := register(registry, newCollector, "a")
		must(t, err)
		if n == 1 {
			second = unregister
		}
	}
	second()
	if _, err := register(registry, newCollector, "a"); err != nil {
		t.Fatal(err)
	}
	got := factoryLabels(t, registry)
	for _, name := range []string{"a", "a (2)", "a (151)"} {
		if len(got) != 151 || !slices.Contains(got, name) {
			t.Errorf("the collector %q is missing in %q", name, got)
		}
	}
	failing := func(string) prometheus.Collector { return newCollector("a") }
	if _, err := register(registry, failing, "b"); err == nil {
		t.Error("register() succeeded for a registered collector, want an error")
	}
}
