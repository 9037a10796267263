package dynamicinformer

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Typed reads the objects of an informer as values of a struct of the caller's. T needs no methods, no scheme and
// no generated code: its JSON tags say what goes where, and what it has no fields for is left out.
//
// Each object is converted each time it is read, after having been decoded where the storage asks for that: some ten
// microseconds for a kilobyte, most of it for allocations. What is returned is the caller's own, and may be changed. To look at many objects for a
// few, select them by label or index; reading all of a large cache again and again is what a handler that keeps the
// converted values is for.
//
// An object that does not fit T is reported with a *ConversionError; it never panics and never hides other objects.
// A Typed is safe for concurrent use.
type Typed[T any] struct {
	informer *Informer
	convert  converter[T]
}

// TypedOption adjusts a Typed.
type TypedOption func(*typedOptions)

type typedOptions struct{ strict bool }

// Strict makes it an error when an object has fields that T has not, at any depth. It suits a T that is meant to
// be complete: without it, a misspelt JSON tag goes unnoticed.
func Strict() TypedOption { return func(o *typedOptions) { o.strict = true } }

// As returns typed access to an informer's cache.
//
//	type Certificate struct {
//		metav1.ObjectMeta `json:"metadata"`
//		Spec struct{ SecretName string `json:"secretName"` } `json:"spec"`
//	}
//	certificates := dynamicinformer.As[Certificate](informer)
func As[T any](informer *Informer, options ...TypedOption) *Typed[T] {
	return &Typed[T]{informer: informer, convert: newConverter[T](informer.gvr, options)}
}

// Informer returns what the objects come from.
func (t *Typed[T]) Informer() *Informer { return t.informer }

// Get returns the object of that name; the namespace of a cluster-scoped one is empty. An object that is not in
// the cache is an error that apierrors.IsNotFound knows.
func (t *Typed[T]) Get(namespace, name string) (*T, error) {
	obj, err := t.informer.named(cache.NewObjectName(namespace, name))
	if err != nil {
		return nil, err
	}
	return t.convert.object(obj)
}

// List returns the objects that a selector selects, of a namespace or (empty) of all, in no particular order. What
// does not fit T is left out and reported: the objects that do are returned beside an error that joins a
// *ConversionError for each that does not.
func (t *Typed[T]) List(namespace string, selector labels.Selector) ([]*T, error) {
	lister := t.informer.Lister()
	list := lister.List
	if namespace != "" {
		list = lister.ByNamespace(namespace).List
	}
	objects, err := list(selector)
	if err != nil {
		return nil, err
	}
	return convertAll(t.convert, objects)
}

// ByIndex returns the objects under a value of an index, as List does. It fails for an index that there is none of. The
// value is the key as the index function gives it: for indexes of a config that are sorted, composite or have a type,
// that is what Key of an indexers.Index makes of a value, and not its text.
func (t *Typed[T]) ByIndex(index, value string) ([]*T, error) {
	objects, err := t.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil, err
	}
	return convertAll(t.convert, objects)
}

// All yields every object, in no particular order, with an error instead of the object where it does not fit T. What is
// yielded is of one moment. Objects are decoded and converted one at a time, when it is their turn, so that memory does
// not grow with their number.
func (t *Typed[T]) All() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for _, obj := range t.informer.Snapshot().All {
			if !yield(t.convert.object(obj)) {
				return
			}
		}
	}
}

// AddEventHandler adds a handler; see cache.SharedInformer.AddEventHandler. The result is what
// RemoveEventHandler takes.
func (t *Typed[T]) AddEventHandler(handler TypedHandler[T]) (cache.ResourceEventHandlerRegistration, error) {
	return t.informer.AddEventHandler(&typedAdapter[T]{handler: handler, convert: t.convert})
}

// TypedHandler is an event handler that gets converted objects. Fields that are nil are not called, and what
// they would get is not converted. All values are the handler's own.
type TypedHandler[T any] struct {
	// Name is the handler's name in HandlerStatus. Default: its Go type.
	Name string
	// OnAdd gets an object that appeared; inInitialList says that it was there before the handler.
	OnAdd func(obj *T, inInitialList bool)
	// OnUpdate gets an object that changed. before is nil if that state did not fit T.
	OnUpdate func(before, after *T)
	// OnDelete gets an object that is gone: in its final state, or, where nobody saw that, in the last that is
	// known (the client-go handler's cache.DeletedFinalStateUnknown); final tells which.
	OnDelete func(obj *T, final bool)
	// OnDeparted gets an object that has left the shard, and exists: see Departed.
	OnDeparted func(obj *T)
	// OnError gets what does not fit T, instead of the call that it would have been: a *ConversionError.
	// Nil: it is logged.
	OnError func(err error)
}

// convertAll converts objects and collects the errors.
func convertAll[T, O any](c converter[T], objects []O) ([]*T, error) {
	all := make([]*T, 0, len(objects))
	var failures []error
	for _, obj := range objects {
		value, err := c.object(obj)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		all = append(all, value)
	}
	return all, errors.Join(failures...)
}

// converter converts the objects of one type.
type converter[T any] struct {
	gvr    schema.GroupVersionResource
	strict bool
	// aliases says that a T may share parts of the object that it is made from.
	aliases bool
}

func newConverter[T any](gvr schema.GroupVersionResource, options []TypedOption) converter[T] {
	var o typedOptions
	for _, option := range options {
		option(&o)
	}
	return converter[T]{gvr: gvr, strict: o.strict, aliases: mayAlias(reflect.TypeFor[T]())}
}

// object converts one object. Conversion code panics for types of fields that it does not know; that is an
// error here.
func (c converter[T]) object(obj any) (value *T, err error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, &ConversionError{GVR: c.gvr, Type: reflect.TypeFor[T](), Err: fmt.Errorf("the object is a %T", obj)}
	}
	defer func() {
		if r := recover(); r != nil {
			value, err = nil, c.failed(u, fmt.Errorf("panic: %v", r))
		}
	}()
	content := u.Object
	if c.aliases {
		content = runtime.DeepCopyJSON(content)
	}
	value = new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, value, c.strict); err != nil {
		return nil, c.failed(u, err)
	}
	return value, nil
}

func (c converter[T]) failed(u *unstructured.Unstructured, err error) error {
	return &ConversionError{GVR: c.gvr, Key: keyOf(u), Type: reflect.TypeFor[T](), Err: err}
}

func keyOf(u *unstructured.Unstructured) string {
	return cache.MetaObjectToName(u).String()
}

// aliasing remembers what mayAlias found of a type.
var aliasing sync.Map

// mayAlias returns whether a value of a type that was made from an unstructured object may share maps or slices
// with it: where it has interfaces, the converter puts in what the object has.
func mayAlias(t reflect.Type) bool {
	if known, ok := aliasing.Load(t); ok {
		return known.(bool)
	}
	found := reachesInterface(t, map[reflect.Type]bool{})
	aliasing.Store(t, found)
	return found
}

func reachesInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return reachesInterface(t.Elem(), seen)
	case reflect.Struct:
		for field := range t.Fields() {
			if field.Tag.Get("json") != "-" && (field.IsExported() || field.Anonymous) && reachesInterface(field.Type, seen) {
				return true
			}
		}
	}
	return false
}

// ConversionError reports an object that does not fit a Go type.
type ConversionError struct {
	// GVR and Key tell the object: its type, and namespace/name, or name.
	GVR schema.GroupVersionResource
	Key string
	// Type is the Go type.
	Type reflect.Type
	// Err is why. With Strict, runtime.IsStrictDecodingError tells fields that Type has not.
	Err error
}

// Error names the object, the type and why.
func (e *ConversionError) Error() string {
	return fmt.Sprintf("%s %s does not fit %s: %v", formatGVR(e.GVR), e.Key, e.Type, e.Err)
}

// Unwrap returns why.
func (e *ConversionError) Unwrap() error { return e.Err }
