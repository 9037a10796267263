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

// handler returns the handler that an informer calls for one that wants objects of a form. What note is told of deletions, it is
// told before; nil: nobody is.
func (f *form) handler(inner toolscache.ResourceEventHandler, note func(deleted any)) toolscache.ResourceEventHandler {
	name := fmt.Sprintf("%T", inner)
	if named, ok := inner.(interface{ HandlerName() string }); ok {
		name = named.HandlerName()
	}
	keys, wants := takesKeys(inner), wantsOf(inner)
	if note != nil {
		inner, wants.delete = noting{inner, note}, true
	}
	switch {
	case keys:
		return dynamicinformer.Named(name, dynamicinformer.MetadataOnly(inner))
	case f.kind == unstructuredForm && note == nil:
		return inner
	case f.kind == unstructuredForm:
		return dynamicinformer.Named(name, inner)
	}
	return dynamicinformer.Named(name, dynamicinformer.MetadataOnly(&decoding{form: f, inner: inner, wants: wants}))
}

// decoding is the handler that an informer calls for one that wants structs.
type decoding struct {
	form  *form
	inner toolscache.ResourceEventHandler
	wants wants
}

// wants says which of its methods a handler does something in.
type wants struct{ add, update, delete bool }

func wantsOf(handler toolscache.ResourceEventHandler) wants {
	switch h := handler.(type) {
	case toolscache.ResourceEventHandlerFuncs:
		return wants{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	case toolscache.ResourceEventHandlerDetailedFuncs:
		return wants{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	}
	return wants{true, true, true}
}

// OnAdd implements toolscache.ResourceEventHandler.
func (d *decoding) OnAdd(stored any, inInitialList bool) {
	if !d.wants.add {
		return
	}
	if object, ok := d.object(stored); ok {
		d.inner.OnAdd(object, inInitialList)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler. An object whose former state did not fit is new to the handler.
func (d *decoding) OnUpdate(before, after any) {
	if !d.wants.update {
		return
	}
	object, ok := d.object(after)
	if !ok {
		return
	}
	former, err := d.form.shared(before)
	if err != nil {
		d.inner.OnAdd(object, false)
		return
	}
	d.inner.OnUpdate(former, object)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (d *decoding) OnDelete(stored any) {
	if !d.wants.delete {
		return
	}
	tombstone, isTombstone := stored.(toolscache.DeletedFinalStateUnknown)
	if isTombstone {
		stored = tombstone.Obj
	}
	object, ok := d.object(stored)
	if !ok {
		if object = d.form.skeleton(stored); object == nil {
			return
		}
	}
	if isTombstone {
		d.inner.OnDelete(toolscache.DeletedFinalStateUnknown{Key: tombstone.Key, Obj: object})
		return
	}
	d.inner.OnDelete(object)
}

// object returns the object, or reports that it does not fit.
func (d *decoding) object(stored any) (client.Object, bool) {
	object, err := d.form.shared(stored)
	if err != nil {
		utilruntime.HandleError(err) //nolint:staticcheck // a handler is called without a context
		return nil, false
	}
	return object, true
}

// skeleton returns an object of the form with what a controller needs to know of one that is gone; nil: nothing is known.
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
	f.stamp(object)
	return object
}
