package dynamicinformer

import (
	"k8s.io/apimachinery/pkg/api/meta"
)

// StripManagedFields is a cache.TransformFunc that drops metadata.managedFields, which is often more
// than half of an object and which readers of a cache hardly ever need. What is not an object with
// metadata (a tombstone, say) passes unchanged. It never fails.
func StripManagedFields(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil
	}
	if len(accessor.GetManagedFields()) > 0 {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
