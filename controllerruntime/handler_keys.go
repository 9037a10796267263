package controllerruntime

import (
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// sourcePackage is where controller-runtime has the handlers by which sources feed queues.
const sourcePackage = "sigs.k8s.io/controller-runtime/pkg/internal/source"

// takesKeys reports whether a handler is that of a source.Kind which puts the keys of objects into a queue,
// without predicates: it looks at nothing but name, namespace and resource version, so that nothing has to be
// decoded for it. Builder's For makes such sources. The type is looked at by reflection, because it is
// internal to controller-runtime; where it is another one in a later version, the handler gets decoded
// objects like any other. TestKeyHandlersAreKnown notices.
func takesKeys(inner toolscache.ResourceEventHandler) bool {
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

// EnqueueRequestForObject takes any client.Object, which packed objects are.
var _ handler.TypedEnqueueRequestForObject[client.Object] = handler.EnqueueRequestForObject{}
