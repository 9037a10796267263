package dynamicinformer

import (
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
)

// typedAdapter is the handler that an informer calls for a TypedHandler.
type typedAdapter[T any] struct {
	handler TypedHandler[T]
	convert converter[T]
}

var (
	_ informer.Named    = (*typedAdapter[struct{}])(nil)
	_ informer.Departed = (*typedAdapter[struct{}])(nil)
)

// HandlerName implements informer.Named.
func (a *typedAdapter[T]) HandlerName() string {
	if a.handler.Name != "" {
		return a.handler.Name
	}
	return fmt.Sprintf("%T", a.handler)
}

// OnAdd implements cache.ResourceEventHandler.
func (a *typedAdapter[T]) OnAdd(obj any, inInitialList bool) {
	if a.handler.OnAdd == nil {
		return
	}
	if value, ok := a.value(obj); ok {
		a.handler.OnAdd(value, inInitialList)
	}
}

// OnUpdate implements cache.ResourceEventHandler. What is wrong with the former state was reported when it was new.
func (a *typedAdapter[T]) OnUpdate(before, after any) {
	if a.handler.OnUpdate == nil {
		return
	}
	value, ok := a.value(after)
	if !ok {
		return
	}
	former, err := a.convert.object(before)
	if err != nil {
		former = nil
	}
	a.handler.OnUpdate(former, value)
}

// OnDelete implements cache.ResourceEventHandler.
func (a *typedAdapter[T]) OnDelete(obj any) {
	if a.handler.OnDelete == nil {
		return
	}
	final := true
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj, final = tombstone.Obj, false
	}
	if value, ok := a.value(obj); ok {
		a.handler.OnDelete(value, final)
	}
}

// OnDeparted implements informer.Departed.
func (a *typedAdapter[T]) OnDeparted(obj any) {
	if a.handler.OnDeparted == nil {
		return
	}
	if value, ok := a.value(obj); ok {
		a.handler.OnDeparted(value)
	}
}

// value converts an object, or reports that it does not fit.
func (a *typedAdapter[T]) value(obj any) (*T, bool) {
	value, err := a.convert.object(obj)
	switch {
	case err == nil:
		return value, true
	case a.handler.OnError != nil:
		a.handler.OnError(err)
	default:
		utilruntime.HandleError(err) //nolint:staticcheck // a handler is called without a context
	}
	return nil, false
}
