package typed

import (
	"cmp"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// Handler is an event handler for converted objects. A nil function is not called, and its objects are
// not converted. The handler owns all values.
type Handler[T any] struct {
	// Name is the handler's name in status.Handler. Default: its Go type.
	Name string
	// OnAdd receives an added object. inInitialList is set for objects that existed before the handler.
	OnAdd func(obj *T, inInitialList bool)
	// OnUpdate receives a changed object. before is nil if the previous state does not fit T.
	OnUpdate func(before, after *T)
	// OnDelete receives a deleted object. final reports whether obj is its final state; otherwise it is the
	// last known state (cache.DeletedFinalStateUnknown of client-go).
	OnDelete func(obj *T, final bool)
	// OnLeftShard receives an object that left the shard and still exists: see sharding.LeftShardHandler.
	OnLeftShard func(obj *T)
	// OnError receives a *ConversionError in place of the event of an object that does not fit T. Default:
	// the error is logged.
	OnError func(err error)
}

// typedHandler calls a Handler for the events of an informer.
type typedHandler[T any] struct {
	handler   Handler[T]
	converter converter[T]
}

var _ sharding.LeftShardHandler = (*typedHandler[struct{}])(nil)

func (a *typedHandler[T]) HandlerName() string {
	return cmp.Or(a.handler.Name, fmt.Sprintf("%T", a.handler))
}

func (a *typedHandler[T]) OnAdd(obj any, inInitialList bool) {
	if value, ok := a.value(obj, a.handler.OnAdd != nil); ok {
		a.handler.OnAdd(value, inInitialList)
	}
}

// OnUpdate implements cache.ResourceEventHandler. A previous state that does not fit T is not reported: it
// was reported when it was the current state.
func (a *typedHandler[T]) OnUpdate(before, after any) {
	value, ok := a.value(after, a.handler.OnUpdate != nil)
	if !ok {
		return
	}
	previous, err := a.converter.convert(before)
	if err != nil {
		previous = nil
	}
	a.handler.OnUpdate(previous, value)
}

func (a *typedHandler[T]) OnDelete(obj any) {
	final := true
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj, final = tombstone.Obj, false
	}
	if value, ok := a.value(obj, a.handler.OnDelete != nil); ok {
		a.handler.OnDelete(value, final)
	}
}

func (a *typedHandler[T]) OnLeftShard(obj any) {
	if value, ok := a.value(obj, a.handler.OnLeftShard != nil); ok {
		a.handler.OnLeftShard(value)
	}
}

// value converts an object, or reports the error. It does nothing for an object that no function receives.
func (a *typedHandler[T]) value(obj any, isReceived bool) (*T, bool) {
	if !isReceived {
		return nil, false
	}
	value, err := a.converter.convert(obj)
	switch {
	case err == nil:
		return value, true
	case a.handler.OnError != nil:
		a.handler.OnError(err)
	default:
		utilruntime.HandleError(err) // a handler is called without a context
	}
	return nil, false
}
