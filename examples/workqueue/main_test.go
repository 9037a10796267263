package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestStages verifies that the operator labels a workload with the current stage of its Environment.
func TestStages(t *testing.T) {
	cluster, err := testcluster.New(t.Context(), testcluster.Options{
		Paths: []string{"../../testdata/crds", "../../testdata/objects"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cluster.Config()) }() // ended by cancel
	await := func(stage string) {
		t.Helper()
		workload := cluster.Client().Resource(workloadsGVR).Namespace("payments")
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true,
			func(ctx context.Context) (bool, error) {
				o, err := workload.Get(ctx, "ledger", metav1.GetOptions{})
				return err == nil && o.GetLabels()["stage"] == stage, err
			})
		if err != nil {
			t.Fatalf("await the stage %s: %v", stage, err)
		}
	}
	await("production")
	for _, stage := range []string{"staging", "production"} {
		patch := fmt.Appendf(nil, `{"spec":{"stage":%q}}`, stage)
		_, err := cluster.Client().Resource(environmentsGVR).Patch(ctx, "production-eu", types.MergePatchType,
			patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		await(stage)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
