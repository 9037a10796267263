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
	i := f.MustForResource(namespaces)
	writes := consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
		namespaces.GroupResource(): i.GetStore()})
	owner := types.NamespacedName{Name: "owner"}
	var stale *consistency.ConsistencyError
	read, err := client.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	writes.WroteAt(owner, "1", namespaces.GroupResource(), read.GetResourceVersion())
	if err := writes.EnsureReady(owner); !errors.As(err, &stale) {
		t.Errorf("before the start, EnsureReady() = %v, want a ConsistencyError", err)
	}
	if err := errors.Join(f.Start(t.Context()), f.WaitForSync(t.Context())); err != nil {
		t.Fatal(err)
	}
	for writes.EnsureReady(owner) != nil && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := f.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
