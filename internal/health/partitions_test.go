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

// TestJoinedPartitions verifies that problems of joined partitions remain until a request succeeds.
func TestJoinedPartitions(t *testing.T) {
	h := New(schema.GroupVersionResource{}, "", time.Now)
	h.Started()
	defer h.Stopped("")
	g := h.Begin("v1", "")
	well, troubled := h.Reporter(g, "well"), h.Reporter(g, "troubled")
	for _, r := range []Reporter{well, troubled} {
		r.RequestStarted(requests.VerbList)
		r.RequestEnded(requests.VerbList, nil)
	}
	h.Synced(g)
	troubled.RequestEnded(requests.VerbWatch, apierrors.NewForbidden(schema.GroupResource{}, "", nil))
	before, _ := h.Snapshot()
	joined := h.Reporter(g, "all", "well", "troubled", "unknown")
	h.SetPartitions([]string{"all"}, "", status.ReasonNone, nil)
	if s, _ := h.Snapshot(); before.State != status.Degraded || s.State != status.Degraded ||
		!strings.HasPrefix(s.Message, "in all: ") {
		t.Errorf("after joining: %v, %q; before: %v; want Degraded in all", s.State, s.Message, before.State)
	}
	troubled.RequestEnded(requests.VerbWatch, nil) // a removed partition
	if s, _ := h.Snapshot(); s.State != status.Degraded {
		t.Errorf("after a report of a removed partition: %v, want Degraded", s.State)
	}
	joined.RequestStarted(requests.VerbWatch)
	joined.RequestEnded(requests.VerbWatch, nil)
	if s, _ := h.Snapshot(); s.State != status.Synced {
		t.Errorf("after a watch: %v, %q, want Synced", s.State, s.Message)
	}
}
