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

// formKind is one of the forms in which controller-runtime reads objects.
type formKind int

const (
	// typedForm is the Go type that the scheme has for a kind.
	typedForm formKind = iota
	// unstructuredForm is *unstructured.Unstructured.
	unstructuredForm
	// metadataForm is *metav1.PartialObjectMetadata.
	metadataForm
)

// kindOfForm returns the form that an object is of.
func kindOfForm(object runtime.Object) formKind {
	switch object.(type) {
	case runtime.Unstructured:
		return unstructuredForm
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadataForm
	}
	return typedForm
}

// form makes objects of what is stored: of a dynamicinformer.PackedObject, of an *unstructured.Unstructured
// where those are kept decoded, or of what a transform has made something else of.
type form struct {
	kind formKind
	gvk  schema.GroupVersionKind
	// typ is the struct that objects are decoded into, pointer a pointer to it, and decoder what decodes;
	// they are nil for unstructuredForm.
	typ, pointer reflect.Type
	decoder      *decode.Decoder
	// apiVersion is that of gvk.
	apiVersion string
}

// formOf returns the form of a resource. object is of it.
func (c *Cache) formOf(key resourceKey, object runtime.Object) (*form, error) {
	f := &form{kind: key.kind, gvk: key.gvk, apiVersion: key.gvk.GroupVersion().String()}
	switch key.kind {
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
	f.decoder = decode.For(f.typ)
	return f, nil
}

// stamp writes the kind into an object that readers share, as client-go does: not into typed ones.
func (f *form) stamp(object client.Object) {
	var gvk schema.GroupVersionKind
	if f.kind == metadataForm {
		gvk = f.gvk
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
}

// shared returns the object that all readers and handlers get, which must not be changed.
func (f *form) shared(stored any) (client.Object, error) {
	packed, isPacked := stored.(dynamicinformer.PackedObject)
	if f.kind == unstructuredForm {
		if isPacked {
			return packed.Unstructured(), nil
		}
		return f.foreign(stored)
	}
	if !isPacked {
		return f.convert(stored)
	}
	if kept, ok := packed.DecodedAs(f.typ).(client.Object); ok {
		return kept, nil
	}
	object, err := f.decode(packed)
	if err != nil {
		return nil, err
	}
	return packed.KeepDecoded(object).(client.Object), nil
}

// decode returns a packed object in a struct of its own.
func (f *form) decode(packed dynamicinformer.PackedObject) (client.Object, error) {
	value := reflect.New(f.typ)
	if err := f.decoder.DecodeView(packed, value); err != nil {
		return nil, f.failed(packed, err)
	}
	object := value.Interface().(client.Object)
	f.stamp(object)
	return object, nil
}

// parse returns the object that JSON is, in one of its own.
func (f *form) parse(json []byte) (client.Object, error) {
	if f.kind == unstructuredForm {
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
	f.stamp(object)
	return object, nil
}

// convert returns what is not packed in this form: a struct of its own, or shared where it is in the form
// already. It goes by way of JSON, as all other objects do: runtime.DefaultUnstructuredConverter cuts
// integers off that do not fit, and knows no encoding.TextUnmarshaler.
func (f *form) convert(stored any) (client.Object, error) {
	u, ok := stored.(*unstructured.Unstructured)
	if !ok {
		return f.foreign(stored)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, f.failed(u, err)
	}
	object, err := f.parse(text)
	if err != nil {
		return nil, f.failed(u, err)
	}
	return object, nil
}

// foreign returns what is in this form already.
func (f *form) foreign(stored any) (client.Object, error) {
	object, ok := stored.(client.Object)
	if !ok {
		return nil, fmt.Errorf("cache contained %T, which is not an Object", stored)
	}
	if reflect.TypeOf(stored) != f.pointer {
		return nil, fmt.Errorf("cache had type %T, but %s was asked for", stored, f.pointer)
	}
	return object, nil
}

// share writes the shared object into out, with which it shares maps and slices.
func (f *form) share(out reflect.Value, stored any) error {
	object, err := f.shared(stored)
	if err != nil {
		return err
	}
	out.Set(reflect.ValueOf(object).Elem())
	return nil
}

// copy writes a copy that is the caller's own into out, a struct.
func (f *form) copy(out reflect.Value, stored any) error {
	object := out.Addr().Interface().(client.Object)
	packed, isPacked := stored.(dynamicinformer.PackedObject)
	switch {
	case !isPacked:
		shared, err := f.shared(stored)
		if err != nil {
			return err
		}
		out.Set(reflect.ValueOf(shared.DeepCopyObject()).Elem())
	case f.kind == unstructuredForm:
		if err := copyUnstructured(out.Addr().Interface().(*unstructured.Unstructured), packed); err != nil {
			return f.failed(packed, err)
		}
	default:
		if kept, ok := packed.DecodedAs(f.typ).(client.Object); ok {
			out.Set(reflect.ValueOf(kept.DeepCopyObject()).Elem())
			break
		}
		out.SetZero()
		if err := f.decoder.DecodeView(packed, out.Addr()); err != nil {
			return f.failed(packed, err)
		}
	}
	f.setKind(object)
	return nil
}

// setKind writes the kind into an object that is the caller's own. Structs get the strings as they are.
func (f *form) setKind(object client.Object) {
	kind := object.GetObjectKind()
	if meta, ok := kind.(*metav1.TypeMeta); ok {
		meta.APIVersion, meta.Kind = f.apiVersion, f.gvk.Kind
		return
	}
	kind.SetGroupVersionKind(f.gvk)
}

// copyUnstructured copies the decoded form that is in memory, or decodes.
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

// failed says which object does not fit.
func (f *form) failed(stored any, err error) error {
	name := "an object"
	if m, ok := stored.(metav1.Object); ok {
		name = client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()}.String()
	}
	return fmt.Errorf("%s %s does not fit %s: %w", f.gvk.Kind, name, f.pointer, err)
}
