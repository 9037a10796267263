package controllerruntime

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// NewInformer is for cache.Options.NewInformer of programs that keep the stock cache. It saves memory for
// unstructured objects alone, which are kept as JSON: to an eighth or so of what maps take. That costs CPU:
// the stock cache decodes each object that arrives, which is encoded again here, and copies each that is
// read, which has been decoded here before. Typed objects and metadata are kept as the stock cache keeps
// them. NewCache saves more, and costs less.
func NewInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	informer, err := dynamicinformer.NewSharedIndexInformer(lw, example, resync, indexers,
		dynamicinformer.Prune{})
	if err != nil {
		panic(err) // only a Prune can be wrong
	}
	return informer
}
