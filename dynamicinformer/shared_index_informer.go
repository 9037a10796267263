package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/store"
)

// NewSharedIndexInformer is cache.NewSharedIndexInformer for code that lists and watches by itself, with the
// store of this package: *unstructured.Unstructured are kept as JSON, without what prune leaves out, and
// decoded when they are read. Others are kept as they come. It has no status and follows no type that goes,
// and each event costs encoding the object, because lw has decoded it: where there is a choice, a Factory
// does better. It fails for a Prune that is wrong.
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
