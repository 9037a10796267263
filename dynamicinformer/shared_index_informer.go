package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/store"
)

// NewSharedIndexInformer is cache.NewSharedIndexInformer with the store of this package, for code that has
// its own ListerWatcher. The cache holds *unstructured.Unstructured as JSON, without the fields that prune
// drops, and decodes them when they are read. It holds other objects unchanged. The informer has no Status
// and does not react to the deletion of its type. Prefer a Factory: here each event is encoded again, because
// lw has decoded it. It returns an error for an invalid Prune.
func NewSharedIndexInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers cache.Indexers, prune Prune) (cache.SharedIndexInformer, error) {
	pruner, err := prune.pruner()
	if err != nil {
		return nil, err
	}
	return informer.New(lw, informer.Options{
		ExampleObject: example, ResyncPeriod: resync, Indexers: indexers, Form: store.NewPacked(pruner, nil),
	}), nil
}
