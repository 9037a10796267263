package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdcache/crdcache/dynamicinformer"
)

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
