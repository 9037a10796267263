package controllerruntime

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Types of controller-runtime that are not exported are recognized by reflection. If a later version changes
// them, their handlers get decoded objects, and TestRecognition fails.
const (
	controllerRuntime  = "sigs.k8s.io/controller-runtime/pkg/"
	sourceHandler      = controllerRuntime + "internal/source.EventHandler"
	consistencyHandler = controllerRuntime + "client/internal/consistencyhandler.ConsistencyHandler"
	ownerHandler       = controllerRuntime + "handler.enqueueRequestForOwner"
	labelSelector      = controllerRuntime + "predicate.LabelSelectorPredicate."
)

// fullName returns the name of a type, or of the type that a pointer refers to, without type arguments.
func fullName(typ reflect.Type) string {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	name, _, _ := strings.Cut(typ.Name(), "[")
	return typ.PkgPath() + "." + name
}

// decodesBecause returns why a handler needs decoded objects. It returns "" if the handler and its predicates
// read only metadata.
func (c *converter) decodesBecause(h toolscache.ResourceEventHandler) string {
	if c.form == typedForm && !hasObjectMeta(c.typ) {
		return fmt.Sprintf("%s has unusual metadata", c.pointer)
	}
	switch h.(type) {
	case MetadataReader, interface{ TakesUndecoded() }: // dynamicinformer.MetadataOnly
		return ""
	}
	v := reflect.ValueOf(h)
	switch {
	case v.Kind() != reflect.Pointer || v.IsNil():
	case fullName(v.Type()) == consistencyHandler:
		return ""
	case fullName(v.Type()) == sourceHandler:
		return sourceDecodesBecause(v.Elem())
	}
	return fmt.Sprintf("handler %s is not a MetadataReader", fullName(v.Type()))
}

// hasObjectMeta reports whether metav1.ObjectMeta decodes the metadata of a struct.
func hasObjectMeta(typ reflect.Type) bool {
	meta, ok := typ.FieldByName("ObjectMeta")
	name, _, _ := strings.Cut(meta.Tag.Get("json"), ",")
	return ok && meta.Anonymous && meta.Type == reflect.TypeFor[metav1.ObjectMeta]() && name == "metadata" &&
		!reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func sourceDecodesBecause(source reflect.Value) string {
	predicates, ok := unexportedField[[]predicate.Predicate](source, "predicates")
	queueing := source.FieldByName("handler")
	if !ok || !queueing.IsValid() || queueing.Kind() != reflect.Interface || queueing.IsNil() {
		return fmt.Sprintf("%s receives objects of a Go type", source.Type())
	}
	for _, p := range predicates {
		if reason := predicateDecodesBecause(p); reason != "" {
			return reason
		}
	}
	return queueingDecodesBecause(reflect.NewAt(queueing.Type(),
		queueing.Addr().UnsafePointer()).Elem().Interface())
}

// contextOf returns the context of the controller that a handler belongs to; nil if it is unknown.
func contextOf(h toolscache.ResourceEventHandler) context.Context {
	v := reflect.ValueOf(h)
	if v.Kind() != reflect.Pointer || v.IsNil() || fullName(v.Type()) != sourceHandler {
		return nil
	}
	ctx, _ := unexportedField[context.Context](v.Elem(), "ctx")
	return ctx
}

// needsOnlyKeys reports whether a handler belongs to a source that queues keys and has no predicates, such as
// that of Builder.For.
func needsOnlyKeys(h toolscache.ResourceEventHandler) bool {
	v := reflect.ValueOf(h)
	if v.Kind() != reflect.Pointer || v.IsNil() || fullName(v.Type()) != sourceHandler {
		return false
	}
	predicates, ok := unexportedField[[]predicate.Predicate](v.Elem(), "predicates")
	queueing := v.Elem().FieldByName("handler")
	return ok && len(predicates) == 0 && queueing.IsValid() && queueing.Kind() == reflect.Interface &&
		!queueing.IsNil() && queueing.Elem().Type() == reflect.TypeFor[*handler.EnqueueRequestForObject]()
}

// unexportedField returns a field of an addressable struct if it has the type T.
func unexportedField[T any](v reflect.Value, name string) (value T, ok bool) {
	field := v.FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return value, false
	}
	return *(*T)(field.Addr().UnsafePointer()), true
}

// queueingDecodesBecause is decodesBecause for a handler that queues requests.
func queueingDecodesBecause(h any) string {
	switch h := h.(type) {
	case MetadataReader, *handler.EnqueueRequestForObject:
		return ""
	case handler.Funcs:
		if wrapped := unchangedHandler(h); wrapped != nil {
			return queueingDecodesBecause(wrapped)
		}
	}
	if name := fullName(reflect.TypeOf(h)); name != ownerHandler {
		return fmt.Sprintf("handler %s is not a MetadataReader", name)
	}
	return ""
}

// methodValue is the memory of a func value that was made from a method of a handler.
type methodValue struct {
	_        uintptr // the code
	receiver handler.EventHandler
}

// receiverOf returns the words of the receiver of a method value, which can be compared.
func receiverOf[F any](f *F) [2]uintptr {
	return *(*[2]uintptr)(unsafe.Pointer(&(*(**methodValue)(unsafe.Pointer(f))).receiver))
}

// unchangedHandler returns the handler that handler.WithLowPriorityWhenUnchanged has wrapped, or nil for
// other Funcs. Handlers of owners are always wrapped. The wrapper holds method values of the handler, so nil
// is also returned if the method values of a known handler do not have the expected memory.
func unchangedHandler(f handler.Funcs) handler.EventHandler {
	var probe handler.EventHandler = &handler.EnqueueRequestForObject{}
	funcs, ok := handler.WithLowPriorityWhenUnchanged(probe).(handler.Funcs)
	if !ok || !haveSameCode(f.CreateFunc, funcs.CreateFunc) ||
		!haveSameCode(f.UpdateFunc, funcs.UpdateFunc) ||
		!haveSameCode(f.DeleteFunc, funcs.DeleteFunc) {
		return nil
	}
	receiver := receiverOf(&f.CreateFunc)
	if receiverOf(&funcs.CreateFunc) != *(*[2]uintptr)(unsafe.Pointer(&probe)) ||
		receiverOf(&f.UpdateFunc) != receiver || receiverOf(&f.DeleteFunc) != receiver {
		return nil
	}
	return (*(**methodValue)(unsafe.Pointer(&f.CreateFunc))).receiver
}

// haveSameCode reports whether two functions, which may be nil, have the same code.
func haveSameCode(a, b any) bool {
	code := reflect.ValueOf(a).Pointer()
	return code != 0 && code == reflect.ValueOf(b).Pointer()
}

// changePredicates are predicates that compare metadata. They embed predicate.Funcs for other events.
var changePredicates = map[reflect.Type]bool{
	reflect.TypeFor[predicate.GenerationChangedPredicate]():      true,
	reflect.TypeFor[predicate.ResourceVersionChangedPredicate](): true,
	reflect.TypeFor[predicate.LabelChangedPredicate]():           true,
	reflect.TypeFor[predicate.AnnotationChangedPredicate]():      true,
}

func predicateDecodesBecause(p predicate.Predicate) string {
	switch p := p.(type) {
	case nil:
		return "a predicate is nil"
	case MetadataReader:
		return ""
	case predicate.Funcs:
		return funcsDecodeBecause(p)
	}
	v := reflect.ValueOf(p)
	if v.Kind() == reflect.Pointer && !v.IsNil() && changePredicates[v.Type().Elem()] {
		v = v.Elem()
	}
	if changePredicates[v.Type()] {
		return funcsDecodeBecause(v.FieldByName("TypedFuncs").Interface().(predicate.Funcs))
	}
	name := fullName(v.Type())
	switch name {
	case controllerRuntime + "predicate.and", controllerRuntime + "predicate.or",
		controllerRuntime + "predicate.not":
		operands := reflect.New(v.Type()).Elem()
		operands.Set(v)
		list, ok := unexportedField[[]predicate.Predicate](operands, "predicates")
		single, isSingle := unexportedField[predicate.Predicate](operands, "predicate")
		if isSingle {
			list = append(list, single)
		}
		for _, operand := range list {
			if reason := predicateDecodesBecause(operand); reason != "" {
				return reason
			}
		}
		if ok || isSingle {
			return ""
		}
	}
	return fmt.Sprintf("predicate %s is not a MetadataReader", name)
}

// funcsDecodeBecause is decodesBecause for functions. It knows the functions of LabelSelectorPredicate by
// their names, which they have if the compiler inlines predicate.NewPredicateFuncs. Sources send no generic
// events.
func funcsDecodeBecause(f predicate.Funcs) string {
	for _, function := range []any{f.CreateFunc, f.UpdateFunc, f.DeleteFunc} {
		code := reflect.ValueOf(function).Pointer()
		if code == 0 {
			continue
		}
		if name := runtime.FuncForPC(code).Name(); !strings.HasPrefix(name, labelSelector) {
			return fmt.Sprintf("a predicate calls %s", name)
		}
	}
	return ""
}
