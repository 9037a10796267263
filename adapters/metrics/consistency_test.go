package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/consistency"
)

type fixedStore string

func (s fixedStore) LastStoreSyncResourceVersion() string { return string(s) }

// TestConsistencyCollector checks the metrics of two controllers in one registry.
func TestConsistencyCollector(t *testing.T) {
	pods, sets := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "apps",
		Resource: "replicasets"}
	registry := prometheus.NewPedanticRegistry()
	for _, controller := range []string{"a_controller", "b_controller"} {
		s := consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
			pods: fixedStore("1000000000000000007"), sets: fixedStore("")})
		s.WroteAt(types.NamespacedName{Name: "a"}, "1", pods, "1000000000000000008")
		for range 2 {
			if s.EnsureReady(types.NamespacedName{Name: "a"}) == nil {
				t.Error("EnsureReady() = nil before the store has the write")
			}
		}
		registry.MustRegister(NewConsistencyCollector(s, controller))
	}
	want := `# HELP a_controller_stale_sync_skips_total Total number of syncs skipped due to a stale watch cache.
# TYPE a_controller_stale_sync_skips_total counter
a_controller_stale_sync_skips_total{group="",resource="pods"} 2
a_controller_stale_sync_skips_total{group="apps",resource="replicasets"} 0
# HELP informer_store_resource_version The 15 least significant digits of the resource version of the store.
# TYPE informer_store_resource_version gauge
informer_store_resource_version{group="",name="a_controller",resource="pods"} 7
informer_store_resource_version{group="",name="b_controller",resource="pods"} 7
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "a_controller_stale_sync_skips_total",
		"informer_store_resource_version"); err != nil {
		t.Error(err)
	}
}
