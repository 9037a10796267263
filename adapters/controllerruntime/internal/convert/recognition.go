package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"

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

// metadataReader is controllerruntime.MetadataReader.
type metadataReader interface{ ReadsOnlyMetadata() }

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
func (c *Converter) decodesBecause(h toolscache.ResourceEventHandler) string {
	if c.form == Typed && !hasObjectMeta(c.typ) {
		return fmt.Sprintf("%s has unusual metadata", c.Pointer)
	}
	switch h.(type) {
	case metadataReader, interface{ TakesUndecoded() }: // dynamicinformer.MetadataOnly
		return ""
	}
	name := fullName(reflect.TypeOf(h))
	if name == consistencyHandler {
		return ""
	}
	source, ok := sourceOf(h)
	if !ok {
		return fmt.Sprintf("handler %s is not a MetadataReader", name)
	}
	predicates, ok := unexported(source, "predicates").([]predicate.Predicate)
	queueing := unexported(source, "handler")
	if !ok || queueing == nil {
		return fmt.Sprintf("%s receives objects of a Go type", source.Type())
	}
	for _, p := range predicates {
		if reason := predicateDecodesBecause(p); reason != "" {
			return reason
		}
	}
	return queueingDecodesBecause(queueing)
}

// hasObjectMeta reports whether metav1.ObjectMeta decodes the metadata of a struct.
func hasObjectMeta(typ reflect.Type) bool {
	meta, ok := typ.FieldByName("ObjectMeta")
	name, _, _ := strings.Cut(meta.Tag.Get("json"), ",")
	return ok && meta.Anonymous && meta.Type == reflect.TypeFor[metav1.ObjectMeta]() && name == "metadata" &&
		!reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// sourceOf returns the handler of a source of controller-runtime.
func sourceOf(h toolscache.ResourceEventHandler) (source reflect.Value, ok bool) {
	v := reflect.ValueOf(h)
	if v.Kind() != reflect.Pointer || v.IsNil() || fullName(v.Type()) != sourceHandler {
		return v, false
	}
	return v.Elem(), true
}

// ContextOf returns the context of the controller that a handler belongs to; nil if it is unknown.
func ContextOf(h toolscache.ResourceEventHandler) context.Context {
	if source, ok := sourceOf(h); ok {
		ctx, _ := unexported(source, "ctx").(context.Context)
		return ctx
	}
	return nil
}

// needsOnlyKeys reports whether a handler belongs to a source that queues keys and has no predicates, such as
// that of Builder.For.
func needsOnlyKeys(h toolscache.ResourceEventHandler) bool {
	source, ok := sourceOf(h)
	if !ok {
		return false
	}
	predicates, ok := unexported(source, "predicates").([]predicate.Predicate)
	_, queuesKeys := unexported(source, "handler").(*handler.EnqueueRequestForObject)
	return ok && len(predicates) == 0 && queuesKeys
}

// queueingDecodesBecause is decodesBecause for a handler that queues requests.
func queueingDecodesBecause(h any) string {
	switch h := h.(type) {
	case metadataReader, *handler.EnqueueRequestForObject:
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
	case metadataReader:
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
	case controllerRuntime + "predicate.and", controllerRuntime + "predicate.or", controllerRuntime + "predicate.not":
		operands := reflect.New(v.Type()).Elem()
		operands.Set(v)
		list, ok := unexported(operands, "predicates").([]predicate.Predicate)
		single, isSingle := unexported(operands, "predicate").(predicate.Predicate)
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
