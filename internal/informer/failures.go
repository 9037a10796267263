package informer

import (
	"maps"
	"slices"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/store"
)

// reportFailures returns what tells utilruntime's error handlers of index functions that fail on these objects.
func reportFailures(logger klog.Logger, objects string) func(store.Failures) {
	return func(failures store.Failures) {
		for _, name := range slices.Sorted(maps.Keys(failures)) {
			one := failures[name]
			utilruntime.HandleErrorWithLogger(logger, one.Err, "Objects could not be indexed and are missing from the index",
				"index", name, "of", objects, "objects", one.Objects, "firstKey", one.Key)
		}
	}
}
