package controllerruntime

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// NewInformer is a cache.Options.NewInformer for programs that keep the stock cache. It saves memory only
// for unstructured objects: as JSON they take about an eighth of the memory of maps. The price is CPU time.
// The stock cache decodes each object that it receives, and NewInformer encodes it again. NewInformer
// decodes each object that is read, and the stock cache then copies it. Typed objects and metadata are
// stored as in the stock cache. NewCache saves more memory at less cost.
func NewInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	informer, err := dynamicinformer.NewSharedIndexInformer(lw, example, resync, indexers,
		dynamicinformer.Prune{})
	if err != nil {
		panic(err) // only a Prune can be invalid
	}
	return informer
}
