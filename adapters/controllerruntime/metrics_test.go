package controllerruntime

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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
		if err := c.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
