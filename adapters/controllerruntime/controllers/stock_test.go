package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// outcomes reconciles each request with the outcome of its name, and then with success.
type outcomes struct {
	mu    sync.Mutex
	count map[string]int
}

func (o *outcomes) Reconcile(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
	o.mu.Lock()
	o.count[r.Name]++
	again := o.count[r.Name] > 1
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
	}
	return reconcile.Result{}, nil
}

// TestOutcomesEqualStock verifies that results, errors and panics have the effects and the metrics of a
// controller of controller-runtime.
func TestOutcomesEqualStock(t *testing.T) {
	f := newFixture(t, Options{})
	ours, stock := &outcomes{count: map[string]int{}}, &outcomes{count: map[string]int{}}
	series := func(name string) map[string]float64 {
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				key, isOfName := family.GetName(), false
				for _, label := range m.GetLabel() {
					isOfName = isOfName || label.GetName() == "controller" && label.GetValue() == name
					if label.GetName() == "result" {
						key += " " + label.GetValue()
					}
				}
				if isOfName && m.GetCounter() != nil {
					got[key] = m.GetCounter().GetValue()
				}
			}
		}
		return got
	}
	stockName := fmt.Sprintf("stock-%p", stock)
	before := series("run-time")
	if err := f.all.Ensure(t.Context(), "apples", Settings{For: watchOf("apple"), Reconciler: ours}); err != nil {
		t.Fatal(err)
	}
	add := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, name := range []string{"success", "error", "terminal", "requeue", "after", "panic"} {
			q.Add(reconcile.Request{NamespacedName: named(name)})
		}
	}
	add(f.all.controllers["apples"].queue)
	inner, err := controller.NewUnmanaged(stockName, controller.Options{Reconciler: stock})
	if err != nil {
		t.Fatal(err)
	}
	err = inner.Watch(source.Func(func(_ context.Context,
		q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		add(q)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = inner.Start(t.Context()) }() // ended by the test
	var want, got map[string]float64
	f.eventually("all reconciles", func() bool {
		want, got = series(stockName), series("run-time")
		for key := range got {
			if got[key] -= before[key]; want[key] == 0 && got[key] == 0 {
				delete(got, key)
			}
		}
		for key := range want { // of the queue of controller-runtime
			if _, ok := got[key]; !ok {
				delete(want, key)
			}
		}
		return want["controller_runtime_reconcile_total success"] == 5 && got["controller_runtime_reconcile_total success"] == 5
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-controller-runtime +ours):\n%s", diff)
	}
	if diff := cmp.Diff(stock.count, ours.count); diff != "" {
		t.Errorf("reconciles (-controller-runtime +ours):\n%s", diff)
	}
}
