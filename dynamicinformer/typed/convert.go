package typed

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

// ConversionError reports an object that does not fit a Go type.
type ConversionError struct {
	// GVR is the type of the object, and Key its namespace/name or name.
	GVR schema.GroupVersionResource
	Key string
	// Type is the Go type.
	Type reflect.Type
	// Err is the cause. With Strict, runtime.IsStrictDecodingError recognises fields that Type lacks.
	Err error
}

// Error returns the object, the Go type and the cause.
func (e *ConversionError) Error() string {
	return fmt.Sprintf("%s %s does not fit %s: %v", naming.FormatType(e.GVR), e.Key, e.Type, e.Err)
}

// Unwrap returns the cause.
func (e *ConversionError) Unwrap() error { return e.Err }

// converter converts the objects of one type.
type converter[T any] struct {
	gvr    schema.GroupVersionResource
	strict bool
	// aliases reports whether a T may share maps or slices with its object.
	aliases bool
}

func newConverter[T any](gvr schema.GroupVersionResource, opts []Option) converter[T] {
	var o options
	for _, option := range opts {
		option(&o)
	}
	return converter[T]{gvr: gvr, strict: o.strict, aliases: mayAlias(reflect.TypeFor[T]())}
}

// convert converts one object. It recovers from panics, because the conversion panics for field types
// that it does not support.
func (c converter[T]) convert(obj any) (value *T, err error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, &ConversionError{
			GVR: c.gvr, Type: reflect.TypeFor[T](), Err: fmt.Errorf("the object is a %T", obj),
		}
	}
	defer func() {
		if r := recover(); r != nil {
			value, err = nil, c.conversionError(u, fmt.Errorf("panic: %v", r))
		}
	}()
	content := u.Object
	if c.aliases {
		content, _ = jsontext.CopyValue(content).(map[string]any)
	}
	value = new(T)
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, value, c.strict)
	if err != nil {
		return nil, c.conversionError(u, err)
	}
	return value, nil
}

func (c converter[T]) conversionError(u *unstructured.Unstructured, err error) error {
	key := cache.MetaObjectToName(u).String()
	return &ConversionError{GVR: c.gvr, Key: key, Type: reflect.TypeFor[T](), Err: err}
}

// mayAliasCache caches the results of mayAlias.
var mayAliasCache sync.Map

// mayAlias reports whether a converted value of type t may share maps or slices with its object. The
// converter copies values into typed fields, and assigns them to interfaces.
func mayAlias(t reflect.Type) bool {
	if cached, ok := mayAliasCache.Load(t); ok {
		return cached.(bool)
	}
	found := reachesInterface(t, map[reflect.Type]bool{})
	mayAliasCache.Store(t, found)
	return found
}

func reachesInterface(t reflect.Type, visited map[reflect.Type]bool) bool {
	if visited[t] {
		return false
	}
	visited[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return reachesInterface(t.Elem(), visited)
	case reflect.Struct:
		for field := range t.Fields() {
			decoded := field.Tag.Get("json") != "-" && (field.IsExported() || field.Anonymous)
			if decoded && reachesInterface(field.Type, visited) {
				return true
			}
		}
	}
	return false
}
