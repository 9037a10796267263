package consistency_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/consistency"
)

// podStore is the store of an informer of Pods.
type podStore struct{ version string }

func (s *podStore) LastStoreSyncResourceVersion() string { return s.version }

func Example() {
	pods := schema.GroupResource{Resource: "pods"}
	store := &podStore{"41"} // informer.GetStore()
	writes := consistency.NewConsistencyStore(
		map[schema.GroupResource]consistency.LastSyncRVGetter{pods: store})

	owner := types.NamespacedName{Namespace: "web", Name: "shop"}
	writes.WroteAt(owner, "uid", pods, "42") // a reconcile of shop has created a Pod

	fmt.Println(writes.EnsureReady(owner)) // the next one would not see it, and is requeued
	store.version = "42"
	fmt.Println(writes.EnsureReady(owner))
	// Output:
	// the cache of pods is at resource version 41 and lacks the write at 42
	// <nil>
}
