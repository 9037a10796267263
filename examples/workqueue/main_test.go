package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crdcache/crdcache/test/testcluster"
)

var workloadsGVR = schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"}

// TestStages verifies that the operator labels a workload with the current stage of its Environment, and
// watches its type only while an Environment has it.
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
	watchType := func(resource string, lists int) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%s.v1.demo.crdcache.dev"}}}`, typeAnnotation, resource)
		_, err := cluster.Client().Resource(environments).Patch(ctx, "scratch", types.MergePatchType, patch,
			metav1.PatchOptions{})
		match := testcluster.Match{Verbs: []string{"list", "watch-list"}, Resource: resource}
		if err = errors.Join(err, cluster.Faults().Await(ctx, match, lists)); err != nil {
			t.Fatal(err)
		}
	}
	watchType("workloads", 1)
	await("production")
	for _, stage := range []string{"staging", "production"} {
		patch := fmt.Appendf(nil, `{"spec":{"stage":%q}}`, stage)
		_, err := cluster.Client().Resource(environments).Patch(ctx, "production-eu", types.MergePatchType,
			patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		await(stage)
	}
	watchType("releases", 1) // and no longer workloads
	watchType("workloads", 2)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
