package dynamicinformer

import (
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestAnotherClusterTakesOver verifies that if another cluster gets the address while a process runs, its
// objects are not saved under the identity of the first cluster.
func TestAnotherClusterTakesOver(t *testing.T) {
	types := []apitest.Type{{GVR: widgets, Kind: "Widget", Namespaced: true},
		{GVR: namespacesGVR, Kind: "Namespace"}}
	first, second, s := apitest.New(t, types...), apitest.New(t, types...), newMemoryBackend()
	for _, server := range []*apitest.Server{first, second} {
		createNamespaces(t, server, metav1.NamespaceSystem)
	}
	first.Create(t, widgets, widget("a", "one"))
	second.Create(t, widgets, widget("a", "two"), widget("a", "three"), widget("a", "four"))

	var current atomic.Pointer[apitest.Server]
	current.Store(first)
	faults, config := conformance.NewFaults(nil), first.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return faults.Wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
			to, err := url.Parse(current.Load().URL)
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.URL.Host, r.Host = to.Host, ""
			return next.RoundTrip(r)
		}))
	})
	f, err := New(Options{Config: config, Persistence: s, PersistenceInterval: time.Millisecond})
	must(t, err)
	i := startSynced(t, f)
	await(t, func() bool { return i.Persistence().Checkpoint.Objects == 1 })
	current.Store(second)
	await(t, func() bool {
		faults.ExpireWatches() // again, because the watch may open only now
		return len(i.GetStore().ListKeys()) == 3
	})
	must(t, f.Shutdown(longContext(t)))
	if i.Persistence().Err == nil {
		t.Error("Persistence().Err = nil, want an error about the other cluster")
	}

	for range 5 { // so that its version exceeds the one of the second cluster
		first.Create(t, widgets, widget("a", "later"))
		first.Delete(t, widgets, "a", "later")
	}
	r := resume(t, first, s, ResourceOptions{})
	r.check(t, "add one true")
	if keys := r.GetStore().ListKeys(); !slices.Equal(keys, []string{"a/one"}) {
		t.Errorf("the cache has the keys %v, want a/one", keys)
	}
}
