package operator_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestMetrics finds the metrics of the cache at controller-runtime's endpoint while the operator runs.
func TestMetrics(t *testing.T) {
	install(t, "workloads", "environments", "releases")
	s := newFixture(t)
	s.applyEnvironment("here", "north")
	o := s.startOperator()
	s.create(s.newWorkload("web", "here"), s.newWorkload("api", "here"))
	s.awaitCondition("web", "Ready", metav1.ConditionTrue)
	harness.Eventually(t, func(context.Context) error {
		if got := cachedWorkloads(t); got != 2 {
			return fmt.Errorf("%v workloads are cached, want 2", got)
		}
		return nil
	})
	o.stop()
	if got := cachedWorkloads(t); got != 0 {
		t.Errorf("%v workloads are cached after the operator has ended", got)
	}
}

func cachedWorkloads(t *testing.T) (objects float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "crdcache_objects" {
			continue
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if label.GetName() == "resource" && label.GetValue() == "workloads" {
					objects += metric.GetGauge().GetValue()
				}
			}
		}
	}
	return objects
}
