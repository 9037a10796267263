package status_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Decide whether to wait for a type, and print why it cannot be read.
func Example() {
	s := status.Status{
		GVR:   schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
		State: status.Degraded, Reason: status.ReasonForbidden, Message: "list is forbidden", Stale: true,
	}
	if s.Settled() && s.State != status.Synced {
		fmt.Println(s)
	}

	// Output:
	// widgets.v1.example.com: Degraded (Forbidden): list is forbidden; stale
}
