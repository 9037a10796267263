package metrics

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestGroupCollector scrapes a group before and after a cluster is removed.
func TestGroupCollector(t *testing.T) {
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{MemoryBudget: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Start(ctx); err != nil {
			t.Fatal(err)
		}
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
	if err := group.Remove(ctx, "staging"); err != nil {
		t.Fatal(err)
	}
	if v, found := value(scrape(t, endpoint), "objects", labelValues{"cluster": "staging"}); found {
		t.Errorf("a removed cluster has %v objects, want no series", v)
	}
}
