package conformance_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/conformance"
)

// TestInformer compares the informer that everything is built on with client-go's.
func TestInformer(t *testing.T) {
	t.Parallel()
	conformance.Run(t, config(t), func(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		return informer.New(lw, informer.Options{ExampleObject: example, ResyncPeriod: resync, Indexers: indexers})
	})
}

// TestFactory compares the informers that users get with client-go's.
func TestFactory(t *testing.T) {
	t.Parallel()
	conformance.Run(t, config(t), func(lw cache.ListerWatcher, _ runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		return newFactoryInformer(t, lw, resync, indexers)
	})
}

// newFactoryInformer makes an informer of a factory of its own. The index by namespace is always there.
func newFactoryInformer(t *testing.T, lw cache.ListerWatcher, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	others := cache.Indexers{}
	for name, f := range indexers {
		if name != cache.NamespaceIndex {
			others[name] = f
		}
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Client: client{lw: lw}, Resync: resync, Indexers: others,
	})
	if err != nil {
		t.Fatal(err)
	}
	i, err := factory.ForResource(configMaps)
	if err != nil {
		t.Fatal(err)
	}
	return i
}
