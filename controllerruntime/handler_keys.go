package controllerruntime

import (
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// sourcePackage is controller-runtime's package of the handlers that feed queues from sources.
const sourcePackage = "sigs.k8s.io/controller-runtime/pkg/internal/source"

// needsOnlyKeys reports whether a handler belongs to a source.Kind that queues keys and has no predicates,
// such as that of Builder.For. Such a handler reads only name, namespace and resource version, so it needs no
// decoding. The type is internal to controller-runtime and is recognized by reflection. If a later version
// changes it, the handler gets decoded objects, and TestKeyHandlersAreKnown fails.
func needsOnlyKeys(inner toolscache.ResourceEventHandler) bool {
	v := reflect.ValueOf(inner)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct ||
		v.Elem().Type().PkgPath() != sourcePackage {
		return false
	}
	queues, predicates := v.Elem().FieldByName("handler"), v.Elem().FieldByName("predicates")
	if !queues.IsValid() || queues.Kind() != reflect.Interface || queues.IsNil() || !predicates.IsValid() ||
		predicates.Kind() != reflect.Slice {
		return false
	}
	return predicates.Len() == 0 &&
		queues.Elem().Type() == reflect.TypeFor[*handler.EnqueueRequestForObject]()
}

// EnqueueRequestForObject accepts any client.Object; packed objects implement it.
var _ handler.TypedEnqueueRequestForObject[client.Object] = handler.EnqueueRequestForObject{}
