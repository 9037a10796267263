package convert

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// Handler wraps a handler that expects objects of a form. Before each delete it calls record, if that is not
// nil.
func (c *Converter) Handler(inner toolscache.ResourceEventHandler,
	record func(deleted any)) toolscache.ResourceEventHandler {
	name := fmt.Sprintf("%T", inner)
	if hasName, ok := inner.(interface{ HandlerName() string }); ok {
		name = hasName.HandlerName()
	}
	reason, coalescing := c.decodesBecause(inner), coalescingOf(inner)
	handled := handledEvents{true, true, true}
	switch h := inner.(type) {
	case toolscache.ResourceEventHandlerFuncs:
		handled = handledEvents{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	case toolscache.ResourceEventHandlerDetailedFuncs:
		handled = handledEvents{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	}
	var onLeftShard func(object any)
	if h, ok := unwrapAs[sharding.LeftShardHandler](inner); ok {
		onLeftShard = h.OnLeftShard
	}
	if record != nil {
		inner, handled.delete = deletionRecorder{inner, record}, true
	}
	if c.form == Unstructured && reason != "" { // the informer decodes
		inner = handlerWithReason{inner, reason}
	} else {
		h := &convertingHandler{converter: c, inner: inner, handled: handled, onlyMetadata: reason == "",
			innerOnLeftShard: onLeftShard}
		if onLeftShard != nil {
			onLeftShard = h.onLeftShard
		}
		inner = dynamicinformer.MetadataOnly(handlerWithReason{h, reason})
	}
	if coalescing != nil {
		inner = coalescing(inner)
	}
	inner = dynamicinformer.Named(name, inner)
	if onLeftShard == nil {
		return inner
	}
	return dynamicinformer.WithLeftShard(inner, onLeftShard)
}

// coalescingOf returns the wrapper that a handler has chosen, or the one that it needs: a handler that reads
// more than keys receives every event. controller-runtime's consistency handler, for instance, waits for
// deletions even of objects that were added just before. It returns nil if the informer's default is right.
func coalescingOf(h toolscache.ResourceEventHandler) func(
	toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	chosen, ok := unwrapAs[interface{ CoalescesEvents() bool }](h)
	switch {
	case ok && chosen.CoalescesEvents():
		return dynamicinformer.Coalesce
	case ok:
		return dynamicinformer.EveryEvent
	}
	if _, takesUndecoded := h.(interface{ TakesUndecoded() }); takesUndecoded || needsOnlyKeys(h) {
		return nil
	}
	return dynamicinformer.EveryEvent
}

// unwrapAs returns a handler or the outermost of its wrappers that implements an interface. It unwraps
// wrappers, as informers do.
func unwrapAs[T any](handler toolscache.ResourceEventHandler) (unwrapped T, ok bool) {
	for {
		if unwrapped, ok = handler.(T); ok {
			return unwrapped, true
		}
		w, wraps := handler.(interface {
			Unwrap() toolscache.ResourceEventHandler
		})
		if !wraps {
			return unwrapped, false
		}
		handler = w.Unwrap()
	}
}

// convertingHandler converts objects to one Form and calls a handler with them.
type convertingHandler struct {
	converter        *Converter
	inner            toolscache.ResourceEventHandler
	handled          handledEvents
	onlyMetadata     bool             // the handler receives metadata; see converter.metadataOf
	innerOnLeftShard func(object any) // nil if inner does not implement LeftShardHandler
}

// handledEvents are the events for which a handler has a function. Objects of others are not decoded.
type handledEvents struct{ add, update, delete bool }

func (h *convertingHandler) OnAdd(stored any, inInitialList bool) {
	if !h.handled.add {
		return
	}
	if object, ok := h.object(stored); ok {
		h.inner.OnAdd(object, inInitialList)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler. If the previous state does not fit the form, the
// handler receives an add.
func (h *convertingHandler) OnUpdate(before, after any) {
	if !h.handled.update {
		return
	}
	object, ok := h.object(after)
	if !ok {
		return
	}
	previous, err := h.convert(before)
	if err != nil {
		h.inner.OnAdd(object, false)
		return
	}
	h.inner.OnUpdate(previous, object)
}

func (h *convertingHandler) OnDelete(stored any) {
	if !h.handled.delete {
		return
	}
	tombstone, isTombstone := stored.(toolscache.DeletedFinalStateUnknown)
	if isTombstone {
		stored = tombstone.Obj
	}
	switch object := h.lastState(stored); {
	case object == nil:
	case isTombstone:
		h.inner.OnDelete(toolscache.DeletedFinalStateUnknown{Key: tombstone.Key, Obj: object})
	default:
		h.inner.OnDelete(object)
	}
}

func (h *convertingHandler) onLeftShard(stored any) {
	if object := h.lastState(stored); object != nil {
		h.innerOnLeftShard(object)
	}
}

// lastState returns the last state of a deleted object. For an object that does not fit the form, it returns
// the metadata, or nil if there is none.
func (h *convertingHandler) lastState(stored any) client.Object {
	if object, ok := h.object(stored); ok {
		return object
	}
	if item, ok := stored.(reducedItem); ok {
		stored = item.stored
	}
	return h.converter.newMetadataObject(stored)
}

func (h *convertingHandler) convert(stored any) (client.Object, error) {
	item, reduced := stored.(reducedItem)
	if reduced {
		stored = item.stored
	}
	if h.onlyMetadata {
		return h.converter.metadataOf(stored, item.keptFields)
	}
	object, err := h.converter.SharedObject(stored)
	if err == nil && reduced && h.converter.form != Metadata {
		object = MarkedCopy(object, item.keptFields)
	}
	return object, err
}

// object returns the object in the form. It reports an object that does not fit, and returns false.
func (h *convertingHandler) object(stored any) (client.Object, bool) {
	object, err := h.convert(stored)
	if err != nil {
		utilruntime.HandleError(err) // a handler is called without a context
		return nil, false
	}
	return object, true
}

// newMetadataObject returns an object of the form with the metadata that controllers need about a deleted
// object, or nil.
func (c *Converter) newMetadataObject(stored any) client.Object {
	from, ok := stored.(metav1.Object)
	if !ok {
		return nil
	}
	object := reflect.New(c.typ).Interface().(client.Object)
	object.SetNamespace(from.GetNamespace())
	object.SetName(from.GetName())
	object.SetUID(from.GetUID())
	object.SetResourceVersion(from.GetResourceVersion())
	object.SetLabels(from.GetLabels())
	object.SetAnnotations(from.GetAnnotations())
	object.SetOwnerReferences(from.GetOwnerReferences())
	c.setSharedKind(object)
	return object
}

// deletionRecorder records a delete before it calls the handler.
type deletionRecorder struct {
	toolscache.ResourceEventHandler
	record func(deleted any)
}

func (d deletionRecorder) OnDelete(object any) {
	d.record(object)
	d.ResourceEventHandler.OnDelete(object)
}
