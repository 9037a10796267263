package typed

import (
	"errors"
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Objects reads an informer's objects as values of T. An object that does not fit T is reported with a
// *ConversionError; it neither panics nor hides other objects. Objects is safe for concurrent use.
type Objects[T any] struct {
	informer  *dynamicinformer.Informer
	converter converter[T]
}

// Option changes the conversion.
type Option func(*options)

type options struct{ strict bool }

// Strict reports an error for objects with fields that T lacks, at any depth. It suits a complete T:
// without it, a misspelt JSON tag remains unnoticed.
func Strict() Option { return func(o *options) { o.strict = true } }

// As returns typed access to the informer's cache.
func As[T any](informer *dynamicinformer.Informer, opts ...Option) *Objects[T] {
	return &Objects[T]{informer: informer, converter: newConverter[T](informer.GVR(), opts)}
}

// Informer returns the informer.
func (t *Objects[T]) Informer() *dynamicinformer.Informer { return t.informer }

// Get returns the object with the name; namespace is empty for a cluster-scoped type. The error
// satisfies apierrors.IsNotFound if the cache does not have the object.
func (t *Objects[T]) Get(namespace, name string) (*T, error) {
	obj, err := t.informer.Lister().ByNamespace(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return t.converter.convert(obj)
}

// List returns the objects that match the selector, in the namespace or, if it is empty, in all
// namespaces, in no particular order. If some objects do not fit T, List returns the others together
// with an error that joins a *ConversionError for each.
func (t *Objects[T]) List(namespace string, selector labels.Selector) ([]*T, error) {
	objects, err := t.informer.Lister().ByNamespace(namespace).List(selector)
	if err != nil {
		return nil, err
	}
	return convertAll(t.converter, objects)
}

// ByIndex returns the objects with a value in an index, with the errors of List. It fails if the index does
// not exist. The value must be as the index function returns it: for sorted, composite and typed indexes of a
// config, use Key of the indexers.Index.
func (t *Objects[T]) ByIndex(index, value string) ([]*T, error) {
	objects, err := t.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil, err
	}
	return convertAll(t.converter, objects)
}

// All yields each object of a snapshot, in no particular order, or an error for an object that does not
// fit T. It decodes and converts one object at a time, so its memory does not grow with their number.
func (t *Objects[T]) All() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for _, obj := range t.informer.Snapshot().All() {
			if !yield(t.converter.convert(obj)) {
				return
			}
		}
	}
}

// AddEventHandler adds a handler, as cache.SharedInformer.AddEventHandler does. RemoveEventHandler of the
// informer takes the result.
func (t *Objects[T]) AddEventHandler(handler Handler[T]) (cache.ResourceEventHandlerRegistration, error) {
	return t.informer.AddEventHandler(&typedHandler[T]{handler: handler, converter: t.converter})
}

// convertAll converts objects and joins the errors.
func convertAll[T, O any](c converter[T], objects []O) ([]*T, error) {
	converted := make([]*T, 0, len(objects))
	var failures []error
	for _, obj := range objects {
		value, err := c.convert(obj)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		converted = append(converted, value)
	}
	return converted, errors.Join(failures...)
}
