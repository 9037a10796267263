package controllerruntime

import (
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/controllerruntime/internal/decode"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// form is a Go representation of API objects: a struct, unstructured or only metadata.
type form int

const (
	// typedForm is the Go type that the scheme has for a kind.
	typedForm form = iota
	// unstructuredForm is *unstructured.Unstructured.
	unstructuredForm
	// metadataForm is *metav1.PartialObjectMetadata.
	metadataForm
)

func formOf(object runtime.Object) form {
	switch object.(type) {
	case runtime.Unstructured:
		return unstructuredForm
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadataForm
	}
	return typedForm
}

// converter converts the stored objects of a type to one form. A stored object is a
// dynamicinformer.PackedObject, an *unstructured.Unstructured if objects are stored decoded, or the result of
// a transform.
type converter struct {
	form form
	gvk  schema.GroupVersionKind
	// typ is the struct that objects are decoded into, pointer a pointer to it. typ and decoder are nil for
	// unstructuredForm.
	typ, pointer reflect.Type
	decoder      *decode.Decoder
	apiVersion   string
}

func (c *Cache) newConverter(key resourceKey, object runtime.Object) (*converter, error) {
	f := &converter{form: key.form, gvk: key.gvk, apiVersion: key.gvk.GroupVersion().String()}
	switch key.form {
	case unstructuredForm:
		f.pointer = reflect.TypeFor[*unstructured.Unstructured]()
		return f, nil
	case metadataForm:
		f.pointer = reflect.TypeFor[*metav1.PartialObjectMetadata]()
	default:
		example, err := c.scheme.New(key.gvk)
		if err != nil {
			return nil, err
		}
		if f.pointer = reflect.TypeOf(example); f.pointer.Kind() != reflect.Pointer ||
			f.pointer.Elem().Kind() != reflect.Struct {
			return nil, fmt.Errorf("%s: a %T cannot be read", key.gvk, object)
		}
		if _, ok := example.(client.Object); !ok {
			return nil, fmt.Errorf("%s: a %T has no metadata", key.gvk, example)
		}
	}
	f.typ = f.pointer.Elem()
	f.decoder = decode.DecoderFor(f.typ)
	return f, nil
}

// setSharedKind sets the kind of a shared object as client-go does: typed objects have none.
func (f *converter) setSharedKind(object client.Object) {
	var gvk schema.GroupVersionKind
	if f.form == metadataForm {
		gvk = f.gvk
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
}

// sharedObject returns the object that all readers and handlers share. They must not change it.
func (f *converter) sharedObject(stored any) (client.Object, error) {
	packed, isPacked := stored.(dynamicinformer.PackedObject)
	if f.form == unstructuredForm {
		if isPacked {
			return packed.Unstructured(), nil
		}
		return f.checkForm(stored)
	}
	if !isPacked {
		return f.convert(stored)
	}
	if decoded, ok := packed.DecodedAs(f.typ).(client.Object); ok {
		return decoded, nil
	}
	object, err := f.decode(packed)
	if err != nil {
		return nil, err
	}
	return packed.KeepDecoded(object).(client.Object), nil
}

// decode decodes a packed object into a new struct.
func (f *converter) decode(packed dynamicinformer.PackedObject) (client.Object, error) {
	value := reflect.New(f.typ)
	if err := f.decoder.DecodeView(packed, value); err != nil {
		return nil, f.misfitError(packed, err)
	}
	object := value.Interface().(client.Object)
	f.setSharedKind(object)
	return object, nil
}

// parse decodes JSON into a new object.
func (f *converter) parse(json []byte) (client.Object, error) {
	if f.form == unstructuredForm {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(json); err != nil {
			return nil, err
		}
		return u, nil
	}
	value := reflect.New(f.typ)
	if err := f.decoder.Decode(json, value); err != nil {
		return nil, err
	}
	object := value.Interface().(client.Object)
	f.setSharedKind(object)
	return object, nil
}

// convert converts a stored object that is not packed. It converts through JSON, because
// runtime.DefaultUnstructuredConverter truncates integers that do not fit, and ignores
// encoding.TextUnmarshaler.
func (f *converter) convert(stored any) (client.Object, error) {
	u, ok := stored.(*unstructured.Unstructured)
	if !ok {
		return f.checkForm(stored)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, f.misfitError(u, err)
	}
	object, err := f.parse(text)
	if err != nil {
		return nil, f.misfitError(u, err)
	}
	return object, nil
}

// checkForm returns a stored object that already has the converter's form, and an error for any other object.
func (f *converter) checkForm(stored any) (client.Object, error) {
	object, ok := stored.(client.Object)
	if !ok {
		return nil, fmt.Errorf("cache contained %T, which is not an Object", stored)
	}
	if reflect.TypeOf(stored) != f.pointer {
		return nil, fmt.Errorf("cache had type %T, but %s was asked for", stored, f.pointer)
	}
	return object, nil
}

// write writes a found object into out, a struct: a copy, or if share is set one that shares maps and slices
// with the cache.
func (f *converter) write(out reflect.Value, found result, share bool) error {
	if !share && !found.shared {
		err := f.writeCopy(out, found.stored)
		if err == nil && found.reduced() {
			mark(out.Addr().Interface().(client.Object), found.keptFields)
		}
		return err
	}
	object, err := f.sharedObject(found.stored)
	if err != nil {
		return err
	}
	if found.reduced() {
		object = markedCopy(object, found.keptFields)
	}
	out.Set(reflect.ValueOf(object).Elem())
	return nil
}

// writeCopy writes a copy into out, a struct. The caller owns it.
func (f *converter) writeCopy(out reflect.Value, stored any) error {
	object := out.Addr().Interface().(client.Object)
	packed, isPacked := stored.(dynamicinformer.PackedObject)
	switch {
	case !isPacked:
		shared, err := f.sharedObject(stored)
		if err != nil {
			return err
		}
		out.Set(reflect.ValueOf(shared.DeepCopyObject()).Elem())
	case f.form == unstructuredForm:
		if err := copyUnstructured(out.Addr().Interface().(*unstructured.Unstructured), packed); err != nil {
			return f.misfitError(packed, err)
		}
	default:
		if decoded, ok := packed.DecodedAs(f.typ).(client.Object); ok {
			out.Set(reflect.ValueOf(decoded.DeepCopyObject()).Elem())
			break
		}
		out.SetZero()
		if err := f.decoder.DecodeView(packed, out.Addr()); err != nil {
			return f.misfitError(packed, err)
		}
	}
	f.setKind(object)
	return nil
}

// setKind sets the kind of an object that the caller owns. It sets the fields of structs directly.
func (f *converter) setKind(object client.Object) {
	kind := object.GetObjectKind()
	if meta, ok := kind.(*metav1.TypeMeta); ok {
		meta.APIVersion, meta.Kind = f.apiVersion, f.gvk.Kind
		return
	}
	kind.SetGroupVersionKind(f.gvk)
}

// copyUnstructured copies the decoded object if there is one, or decodes the packed one.
func copyUnstructured(out *unstructured.Unstructured, packed dynamicinformer.PackedObject) error {
	if decoded := packed.Decoded(); decoded != nil {
		decoded.DeepCopyInto(out)
		return nil
	}
	decoded, err := packed.Decode()
	if err != nil {
		return err
	}
	out.Object = decoded.Object
	return nil
}

// misfitError wraps a decoding error with the name of the object.
func (f *converter) misfitError(stored any, err error) error {
	name := "an object"
	if m, ok := stored.(metav1.Object); ok {
		name = client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()}.String()
	}
	return fmt.Errorf("%s %s does not fit %s: %w", f.gvk.Kind, name, f.pointer, err)
}
