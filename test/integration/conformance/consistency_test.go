//go:build newkubernetes

package conformance_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/consistency"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestUpstreamConsistency uses the store of an informer with the package that client-go has since 0.38.
func TestUpstreamConsistency(t *testing.T) {
	client, clientErr := dynamicinformer.NewClient(harness.Config(t), nil)
	f, err := dynamicinformer.New(dynamicinformer.Options{Client: client})
	if err = errors.Join(clientErr, err); err != nil {
		t.Fatal(err)
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	owner := types.NamespacedName{Name: "x"}
	read, err := client.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
	writes := consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
		namespaces.GroupResource(): f.MustForResource(namespaces).GetStore()})
	writes.WroteAt(owner, "1", namespaces.GroupResource(), read.GetResourceVersion())
	if stale := writes.EnsureReady(owner); stale == nil {
		t.Error("EnsureReady() = nil before the start")
	}
	if err := errors.Join(err, f.Start(t.Context()), f.WaitForSync(t.Context())); err != nil {
		t.Fatal(err)
	}
	for writes.EnsureReady(owner) != nil && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	_ = f.Shutdown(t.Context())
}
