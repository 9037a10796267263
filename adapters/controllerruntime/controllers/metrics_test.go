package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// outcomes reconciles each request with the outcome of its name, and then with success.
type outcomes struct{ requestLog }

func (o *outcomes) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	o.mu.Lock()
	o.counts[r.Name]++
	again := o.counts[r.Name] > 1
	o.mu.Unlock()
	switch {
	case again:
	case r.Name == "error":
		return reconcile.Result{RequeueAfter: time.Hour}, errors.New("expected")
	case r.Name == "terminal":
		return reconcile.Result{}, reconcile.TerminalError(errors.New("expected"))
	case r.Name == "requeue":
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // programs use it
	case r.Name == "after":
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	case r.Name == "panic":
		panic("expected")
	case r.Name == "waiting":
		<-ctx.Done()
	}
	return reconcile.Result{}, nil
}

// seriesOf returns the values of metrics by their names and the values of their labels.
func seriesOf(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			series[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return series
}

// TestLastError verifies that the status has the last error, also that of a panic.
func TestLastError(t *testing.T) {
	f := newFixture(t, Options{})
	panics := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		panic("expected")
	})
	err := f.all.Ensure(t.Context(), "apples", Settings{For: watchOf("apple"), Reconciler: panics})
	if err != nil {
		t.Fatal(err)
	}
	f.all.controllers["apples"].queue.Add(reconcile.Request{NamespacedName: named("a")})
	f.eventually("the panic as the last error", func() bool {
		s, _ := f.all.Status("apples")
		return s.LastError != nil && strings.Contains(s.LastError.Error(), "panicked")
	})
}

// TestMetrics verifies that results, errors and panics have the effects and the metrics of a controller of
// controller-runtime. It verifies that the queue, the running reconciles and the results of a controller also
// have series with its name, until Stop.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFixture(t, Options{Metrics: registry})
	ours := &outcomes{requestLog{counts: map[string]int{}}}
	stock := &outcomes{requestLog{counts: map[string]int{}}}
	shared := func(name string) map[string]float64 {
		counters := map[string]float64{}
		for key, value := range seriesOf(t, metrics.Registry) {
			metric, result, ok := strings.Cut(key, "_total "+name)
			if ok && strings.HasPrefix(metric, "controller_runtime_") {
				counters[metric+result] = value
			}
		}
		return counters
	}
	before := shared("run-time")
	if err := f.all.Ensure(t.Context(), "apples", Settings{For: watchOf("apple"), Reconciler: ours}); err != nil {
		t.Fatal(err)
	}
	queue := f.all.controllers["apples"].queue
	add := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], names ...string) {
		for _, name := range names {
			q.Add(reconcile.Request{NamespacedName: named(name)})
		}
	}
	names := []string{"success", "error", "terminal", "requeue", "after", "panic"}
	add(queue, names...)
	stockName := fmt.Sprintf("stock-%p", stock)
	inner, err := controller.NewUnmanaged(stockName, controller.Options{Reconciler: stock})
	err = errors.Join(err, inner.Watch(source.Func(func(_ context.Context,
		q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		add(q, names...)
		return nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = inner.Start(t.Context()) }() // ended by the test
	var want, got map[string]float64
	f.eventually("all reconciles", func() bool {
		want, got = shared(stockName), shared("run-time")
		for key := range got {
			got[key] -= before[key]
		}
		const success = "controller_runtime_reconcile success"
		return want[success] == 5 && got[success] == 5
	})
	if diff := cmp.Diff(want, got) + cmp.Diff(stock.counts, ours.counts); diff != "" {
		t.Errorf("metrics and reconciles (-controller-runtime +ours):\n%s", diff)
	}
	add(queue, "waiting", "queued")
	want = map[string]float64{}
	for name, value := range map[string]float64{"queue_length apples": 1, "active_reconciles apples": 1,
		"reconciles_total apples success": 5, "reconciles_total apples error": 3,
		"reconciles_total apples requeue": 1, "reconciles_total apples requeue_after": 1} {
		want["crdcache_controller_"+name] = value
	}
	f.eventually("the running reconcile", func() bool {
		got = seriesOf(t, registry)
		return got["crdcache_controller_active_reconciles apples"] == 1
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if err := f.all.Stop(t.Context(), "apples"); err != nil || len(seriesOf(t, registry)) > 0 {
		t.Errorf("after Stop() = %v, the series are %v, want none", err, seriesOf(t, registry))
	}
}
