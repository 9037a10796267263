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

// handler returns the handler that an informer calls for one that wants objects of a form. What note is told
// of deletions, it is told before; nil: nobody is.
func (f *form) handler(inner toolscache.ResourceEventHandler,
	note func(deleted any)) toolscache.ResourceEventHandler {
	name := fmt.Sprintf("%T", inner)
	if named, ok := inner.(interface{ HandlerName() string }); ok {
		name = named.HandlerName()
	}
	keys, wants, departed := takesKeys(inner), wantsOf(inner), departedOf(inner)
	if note != nil {
		inner, wants.delete = noting{inner, note}, true
	}
	switch {
	case keys:
		inner = dynamicinformer.MetadataOnly(inner)
	case f.kind == unstructuredForm && note == nil:
		return inner
	case f.kind != unstructuredForm:
		d := &decoding{form: f, inner: inner, wants: wants, departed: departed}
		if departed != nil {
			departed = d.onDeparted
		}
		inner = dynamicinformer.MetadataOnly(d)
	}
	inner = dynamicinformer.Named(name, inner)
	if departed == nil {
		return inner
	}
	return dynamicinformer.WithDeparted(inner, departed)
}

// departedOf returns what tells a handler of objects that leave the shard; nil: it is not told. It looks
// through wrappers, as informers do.
func departedOf(handler toolscache.ResourceEventHandler) func(object any) {
	for {
		if d, ok := handler.(dynamicinformer.Departed); ok {
			return d.OnDeparted
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

// decoding is the handler that an informer calls for one that wants structs.
type decoding struct {
	form     *form
	inner    toolscache.ResourceEventHandler
	wants    wants
	departed func(object any) // nil: inner is not told
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

// OnUpdate implements toolscache.ResourceEventHandler. An object whose former state did not fit is new to the
// handler.
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
	object := d.last(stored)
	if object == nil {
		return
	}
	if isTombstone {
		d.inner.OnDelete(toolscache.DeletedFinalStateUnknown{Key: tombstone.Key, Obj: object})
		return
	}
	d.inner.OnDelete(object)
}

func (d *decoding) onDeparted(stored any) {
	if object := d.last(stored); object != nil {
		d.departed(object)
	}
}

// last returns the last state of an object that is no longer there: where it does not fit, what is known of
// it; nil: nothing is.
func (d *decoding) last(stored any) client.Object {
	if object, ok := d.object(stored); ok {
		return object
	}
	return d.form.skeleton(stored)
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

// skeleton returns an object of the form with what a controller needs to know of one that is gone; nil:
// nothing is known.
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
