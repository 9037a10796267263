package controllerruntime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// renewLease updates a Lease five times a second until the test ends, so that resource versions increase as
// in a cluster with controllers.
func renewLease(t testing.TB) {
	t.Helper()
	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	leases := client.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1",
		Resource: "leases"}).Namespace(harness.Namespace(t))
	ctx, cancel := context.WithCancel(context.Background())
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	o.SetName("busy")
	o, err = leases.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ended by the cleanup
		defer close(ended)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			o.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
			updated, err := leases.Update(ctx, o, metav1.UpdateOptions{})
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			o = updated
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}
