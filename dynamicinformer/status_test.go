package dynamicinformer

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestStatusInOneLine(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for want, status := range map[string]Status{
		"widgets.v1.example.com: Synced": {GVR: gvr, State: StateSynced},
		"widgets.v1.example.com (namespace a): Degraded (Forbidden): you may not; stale": {
			GVR: gvr, View: "namespace a", State: StateDegraded, Reason: ReasonForbidden, Message: "you may not", Stale: true,
		},
		"pods.v1: Pending": {GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, State: StatePending},
	} {
		if got := fmt.Sprint(status); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
