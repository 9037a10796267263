package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
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

// TestMessageOfFirstPartition verifies that the message is that of the first partition by name.
func TestMessageOfFirstPartition(t *testing.T) {
	for range 20 {
		h := New(schema.GroupVersionResource{}, "", time.Now)
		h.Started()
		g := h.Begin("v1", "")
		for _, name := range []string{"c", "a", "d", "b"} {
			h.Reporter(g, name).RequestEnded(requests.VerbList,
				apierrors.NewForbidden(schema.GroupResource{}, "", nil))
		}
		if s, _ := h.Snapshot(); !strings.HasPrefix(s.Message, "in a: ") {
			t.Fatalf("Message = %q, want the one of partition a", s.Message)
		}
		h.SetPartitions([]string{"b", "c"}, "", status.ReasonNone, nil)
		if s, _ := h.Snapshot(); !strings.HasPrefix(s.Message, "in b: ") {
			t.Fatalf("without a and d, Message = %q, want the one of partition b", s.Message)
		}
		h.Stopped("")
	}
}
