package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestMetrics verifies that the queue, the running reconciles and the results of a controller have series
// with its name, until Stop.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFixture(t, Options{Metrics: registry})
	f.install("apple")
	err := f.all.Ensure(t.Context(), "apples", Settings{For: watchOf("apple"), Reconciler: reconcile.Func(
		func(ctx context.Context, r reconcile.Request) (result reconcile.Result, err error) {
			switch r.Name {
			case "bad":
				err = reconcile.TerminalError(errors.New("bad"))
			case "later":
				result.RequeueAfter = time.Hour
			case "waiting":
				<-ctx.Done()
			}
			return result, err
		})})
	if err != nil {
		t.Fatal(err)
	}
	series := func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				name := family.GetName()
				for _, label := range m.GetLabel() {
					name += " " + label.GetValue()
				}
				got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		return got
	}
	want := map[string]float64{}
	for _, step := range []struct {
		object, changed string
		value           float64
	}{
		{"good", "reconciles_total apples success", 1}, {"bad", "reconciles_total apples error", 1},
		{"later", "reconciles_total apples requeue_after", 1}, {"better", "reconciles_total apples success", 2},
		{"waiting", "active_reconciles apples", 1}, {"queued", "queue_length apples", 1},
	} {
		f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: %s}}", step.object)
		want["crdcache_controller_"+step.changed] = step.value
		f.eventually(step.object, func() bool { return series()["crdcache_controller_"+step.changed] == step.value })
	}
	if diff := cmp.Diff(want, series()); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if err := f.all.Stop(t.Context(), "apples"); err != nil || len(series()) > 0 {
		t.Errorf("after Stop() = %v, the series are %v, want none", err, series())
	}
}
