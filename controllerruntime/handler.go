package controllerruntime

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// handler wraps a handler that expects objects of a form. Before each delete it calls record, if that is not
// nil.
func (f *form) handler(inner toolscache.ResourceEventHandler,
	record func(deleted any)) toolscache.ResourceEventHandler {
	name := fmt.Sprintf("%T", inner)
	if hasName, ok := inner.(interface{ HandlerName() string }); ok {
		name = hasName.HandlerName()
	}
	keys, handles, onLeftShard := needsOnlyKeys(inner), handledEventsOf(inner), onLeftShardOf(inner)
	if record != nil {
		inner, handles.delete = deletionRecorder{inner, record}, true
	}
	switch {
	case keys:
		inner = dynamicinformer.MetadataOnly(inner)
	case f.kind == unstructuredForm && record == nil:
		return inner
	case f.kind != unstructuredForm:
		d := &decodingHandler{form: f, inner: inner, handles: handles, innerOnLeftShard: onLeftShard}
		if onLeftShard != nil {
			onLeftShard = d.onLeftShard
		}
		inner = dynamicinformer.MetadataOnly(d)
	}
	inner = dynamicinformer.Named(name, inner)
	if onLeftShard == nil {
		return inner
	}
	return dynamicinformer.WithLeftShard(inner, onLeftShard)
}

// onLeftShardOf returns the method that a handler has for objects that leave the shard, or nil. It unwraps
// wrappers, as informers do.
func onLeftShardOf(handler toolscache.ResourceEventHandler) func(object any) {
	for {
		if d, ok := handler.(dynamicinformer.LeftShardHandler); ok {
			return d.OnLeftShard
		}
		w, ok := handler.(interface {
			Unwrap() toolscache.ResourceEventHandler
		})
		if !ok {
			return nil
		}
		handler = w.Unwrap()
	}
}

// decodingHandler wraps a handler that expects structs.
type decodingHandler struct {
	form             *form
	inner            toolscache.ResourceEventHandler
	handles          handledEvents
	innerOnLeftShard func(object any) // nil if inner does not implement LeftShardHandler
}

// handledEvents has the events that a handler does not ignore.
type handledEvents struct{ add, update, delete bool }

func handledEventsOf(handler toolscache.ResourceEventHandler) handledEvents {
	switch h := handler.(type) {
	case toolscache.ResourceEventHandlerFuncs:
		return handledEvents{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	case toolscache.ResourceEventHandlerDetailedFuncs:
		return handledEvents{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	}
	return handledEvents{true, true, true}
}

// OnAdd implements toolscache.ResourceEventHandler.
func (d *decodingHandler) OnAdd(stored any, inInitialList bool) {
	if !d.handles.add {
		return
	}
	if object, ok := d.object(stored); ok {
		d.inner.OnAdd(object, inInitialList)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler. If the previous state does not fit the form, the
// handler receives an add.
func (d *decodingHandler) OnUpdate(before, after any) {
	if !d.handles.update {
		return
	}
	object, ok := d.object(after)
	if !ok {
		return
	}
	previous, err := d.form.sharedObject(before)
	if err != nil {
		d.inner.OnAdd(object, false)
		return
	}
	d.inner.OnUpdate(previous, object)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (d *decodingHandler) OnDelete(stored any) {
	if !d.handles.delete {
		return
	}
	tombstone, isTombstone := stored.(toolscache.DeletedFinalStateUnknown)
	if isTombstone {
		stored = tombstone.Obj
	}
	object := d.lastState(stored)
	if object == nil {
		return
	}
	if isTombstone {
		d.inner.OnDelete(toolscache.DeletedFinalStateUnknown{Key: tombstone.Key, Obj: object})
		return
	}
	d.inner.OnDelete(object)
}

func (d *decodingHandler) onLeftShard(stored any) {
	if object := d.lastState(stored); object != nil {
		d.innerOnLeftShard(object)
	}
}

// lastState returns the last state of a deleted object. If it does not fit the form, it returns its metadata,
// or nil if there is none.
func (d *decodingHandler) lastState(stored any) client.Object {
	if object, ok := d.object(stored); ok {
		return object
	}
	return d.form.skeleton(stored)
}

// object returns the object in the form. It reports an object that does not fit, and returns false.
func (d *decodingHandler) object(stored any) (client.Object, bool) {
	object, err := d.form.sharedObject(stored)
	if err != nil {
		utilruntime.HandleError(err) //nolint:staticcheck // a handler is called without a context
		return nil, false
	}
	return object, true
}

// skeleton returns an object of the form with the metadata that controllers need about a deleted object, or
// nil.
func (f *form) skeleton(stored any) client.Object {
	from, ok := stored.(metav1.Object)
	if !ok {
		return nil
	}
	object := reflect.New(f.typ).Interface().(client.Object)
	object.SetNamespace(from.GetNamespace())
	object.SetName(from.GetName())
	object.SetUID(from.GetUID())
	object.SetResourceVersion(from.GetResourceVersion())
	object.SetLabels(from.GetLabels())
	object.SetAnnotations(from.GetAnnotations())
	object.SetOwnerReferences(from.GetOwnerReferences())
	f.setSharedKind(object)
	return object
}
