package health

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/requests"
)

// withPartitions returns a Health with many partitions without problems, and the Reporter of one.
func withPartitions(n int) (*Health, Reporter) {
	h := New(schema.GroupVersionResource{}, "", time.Now)
	h.Started()
	g := h.Begin("v1", "")
	var r Reporter
	for k := range n {
		r = h.Reporter(g, fmt.Sprint("ns-", k))
		r.RequestStarted(requests.VerbList)
		r.RequestEnded(requests.VerbList, nil)
	}
	return h, r
}

// TestCostOfHealthyPartitions verifies that recording a request takes memory independent of the number of
// other partitions.
func TestCostOfHealthyPartitions(t *testing.T) {
	costs := func(n int) float64 {
		h, r := withPartitions(n)
		defer h.Stopped("")
		return testing.AllocsPerRun(100, func() {
			r.RequestStarted(requests.VerbList)
			r.RequestEnded(requests.VerbWatch, nil)
		})
	}
	if few, lots := costs(10), costs(2000); lots != few {
		t.Errorf("recording a request makes %v allocations with many partitions, %v with few, want equal numbers", lots, few)
	}
}
