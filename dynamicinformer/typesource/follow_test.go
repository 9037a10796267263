package typesource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/test/testcluster"
)

var workloads = schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"}

// TestDefaultFollowsCRDs verifies that a factory without Types follows the CRDs of its types, without
// reporting errors: a CRD comes late, goes, and comes again. The CRDs of many types share one watch.
func TestDefaultFollowsCRDs(t *testing.T) {
	for name, others := range map[string]int{"one type": 0, "many types": 20} {
		t.Run(name, func(t *testing.T) { testFollowsCRDs(t, others) })
	}
}

func testFollowsCRDs(t *testing.T, others int) {
	reported := make(chan error, 100)
	before := utilruntime.ErrorHandlers
	defer func() { utilruntime.ErrorHandlers = before }()
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, _ string, _ ...any) { reported <- err }}
	cluster, i, deletions := start(t, nil, true, others)
	expect(t, "without a CRD", i, status.ReasonNotInstalled)
	for range 2 {
		err := cluster.LoadFiles(t.Context(), "../../testdata/crds")
		expect(t, "with the CRD", i, status.ReasonNone)
		a := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "demo.crdcache.dev/v1",
			"kind": "Workload", "metadata": map[string]any{"namespace": "default", "name": "a"}}}
		if err := errors.Join(err, cluster.Load(t.Context(), a)); err != nil {
			t.Fatal(err)
		}
		until(t, "an object arrives",
			func() bool { return slices.Equal(i.GetStore().ListKeys(), []string{"default/a"}) })
		if err := cluster.Client().Resource(crd.GVR).Delete(t.Context(), workloads.GroupResource().String(),
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(t, "after the deletion", i, status.ReasonNotInstalled)
		until(t, "the object is deleted", func() bool { return deletions.Swap(0) == 1 })
	}
	watches := testcluster.Match{Verbs: []string{"watch"}, Resource: crd.GVR.Resource}
	if n := cluster.Faults().Count(watches); n > 3 {
		t.Errorf("%d watches of CRDs for %d types, want one, and a few retries", n, others+1)
	}
	if len(reported) > 0 {
		t.Errorf("%d errors are reported, want none; the first is: %v", len(reported), <-reported)
	}
}

// TestCRDsAreNotFollowed verifies when a factory assumes that a type exists.
func TestCRDsAreNotFollowed(t *testing.T) {
	_, i, _ := start(t, typesource.AssumeServed, true, 0)
	expect(t, "AssumeServed", i, status.ReasonNotFound)
	_, i, _ = start(t, nil, false, 0)
	expect(t, "without permission", i, status.ReasonNotFound)
}

// start starts an informer of workloads, and of other types, in a cluster without them, in which CRDs can be
// read or not.
func start(t *testing.T, types typesource.Source, readsCRDs bool, others int) (cluster *testcluster.Cluster,
	i *dynamicinformer.Informer, deletions *atomic.Int64) {
	t.Helper()
	cluster, clusterErr := testcluster.New(t.Context(), testcluster.Options{})
	if !readsCRDs {
		cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: crd.GVR.Resource},
			Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")})
	}
	f, err := dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config(), Types: types})
	i, deletions = f.MustForResource(workloads), &atomic.Int64{}
	for n := range others {
		f.MustForResource(workloads.GroupVersion().WithResource(fmt.Sprint("others", n)))
	}
	_, handlerErr := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(any) { deletions.Add(1) }})
	if err := errors.Join(clusterErr, err, handlerErr, f.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Shutdown(context.Background()) })
	return cluster, i, deletions
}

func expect(t *testing.T, step string, i *dynamicinformer.Informer, reason status.Reason) {
	t.Helper()
	until(t, step, func() bool {
		return i.Status().Reason == reason && i.HasSynced() == (reason == status.ReasonNone)
	})
}

// until waits for a condition.
func until(t *testing.T, condition string, met func() bool) {
	t.Helper()
	for limit := time.Now().Add(5 * time.Minute); !met(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s: the condition is not met", condition)
		}
	}
}
