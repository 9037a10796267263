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

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/decode"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/jsontext"
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
	conv := &converter{form: key.form, gvk: key.gvk, apiVersion: key.gvk.GroupVersion().String()}
	switch key.form {
	case unstructuredForm:
		conv.pointer = reflect.TypeFor[*unstructured.Unstructured]()
		return conv, nil
	case metadataForm:
		conv.pointer = reflect.TypeFor[*metav1.PartialObjectMetadata]()
	default:
		example, err := c.scheme.New(key.gvk)
		if err != nil {
			return nil, err
		}
		if conv.pointer = reflect.TypeOf(example); conv.pointer.Kind() != reflect.Pointer ||
			conv.pointer.Elem().Kind() != reflect.Struct {
			return nil, fmt.Errorf("%s: a %T cannot be read", key.gvk, object)
		}
		if _, ok := example.(client.Object); !ok {
			return nil, fmt.Errorf("%s: a %T has no metadata", key.gvk, example)
		}
	}
	conv.typ = conv.pointer.Elem()
	conv.decoder = decode.DecoderFor(conv.typ)
	return conv, nil
}

// setSharedKind sets the kind of a shared object as client-go does: typed objects have none.
func (c *converter) setSharedKind(object client.Object) {
	var gvk schema.GroupVersionKind
	if c.form == metadataForm {
		gvk = c.gvk
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
}

// sharedObject returns the object that all readers and handlers share. They must not change it.
func (c *converter) sharedObject(stored any) (client.Object, error) {
	packed, isPacked := stored.(dynamicinformer.PackedObject)
	if c.form == unstructuredForm {
		if isPacked {
			return packed.Unstructured(), nil
		}
		return c.checkForm(stored)
	}
	if !isPacked {
		return c.convert(stored)
	}
	if decoded, ok := packed.DecodedAs(c.typ).(client.Object); ok {
		return decoded, nil
	}
	object, err := c.decode(packed)
	if err != nil {
		return nil, err
	}
	return packed.KeepDecoded(object).(client.Object), nil
}

// decode decodes a packed object into a new struct.
func (c *converter) decode(packed dynamicinformer.PackedObject) (client.Object, error) {
	value := reflect.New(c.typ)
	if err := c.decoder.DecodeView(packed, value); err != nil {
		return nil, c.misfitError(packed, err)
	}
	object := value.Interface().(client.Object)
	c.setSharedKind(object)
	return object, nil
}

// parse decodes JSON into a new object.
func (c *converter) parse(json []byte) (client.Object, error) {
	if c.form == unstructuredForm {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(json); err != nil {
			return nil, err
		}
		return u, nil
	}
	value := reflect.New(c.typ)
	if err := c.decoder.Decode(json, value); err != nil {
		return nil, err
	}
	object := value.Interface().(client.Object)
	c.setSharedKind(object)
	return object, nil
}

// convert converts a stored object that is not packed. It converts through JSON, because
// runtime.DefaultUnstructuredConverter truncates integers that do not fit, and ignores
// encoding.TextUnmarshaler.
func (c *converter) convert(stored any) (client.Object, error) {
	u, ok := stored.(*unstructured.Unstructured)
	if !ok {
		return c.checkForm(stored)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, c.misfitError(u, err)
	}
	object, err := c.parse(text)
	if err != nil {
		return nil, c.misfitError(u, err)
	}
	return object, nil
}

// checkForm returns a stored object that already has the converter's form, and an error for any other object.
func (c *converter) checkForm(stored any) (client.Object, error) {
	object, ok := stored.(client.Object)
	if !ok {
		return nil, fmt.Errorf("cache contained %T, which is not an Object", stored)
	}
	if reflect.TypeOf(stored) != c.pointer {
		return nil, fmt.Errorf("cache had type %T, but %s was asked for", stored, c.pointer)
	}
	return object, nil
}

// write writes a found object into out, a struct: a copy, or if share is set one that shares maps and slices
// with the cache.
func (c *converter) write(out reflect.Value, res readResult, share bool) error {
	if !share && !res.shared {
		err := c.writeCopy(out, res.stored)
		if err == nil && res.reduced() {
			mark(out.Addr().Interface().(client.Object), res.keptFields)
		}
		return err
	}
	object, err := c.sharedObject(res.stored)
	if err != nil {
		return err
	}
	if res.reduced() {
		object = markedCopy(object, res.keptFields)
	}
	out.Set(reflect.ValueOf(object).Elem())
	return nil
}

// writeCopy writes a copy into out, a struct. The caller owns it.
func (c *converter) writeCopy(out reflect.Value, stored any) error {
	object := out.Addr().Interface().(client.Object)
	packed, isPacked := stored.(dynamicinformer.PackedObject)
	switch {
	case !isPacked:
		shared, err := c.sharedObject(stored)
		if err != nil {
			return err
		}
		if u, ok := shared.(*unstructured.Unstructured); ok {
			out.Addr().Interface().(*unstructured.Unstructured).Object = copyContent(u)
			break
		}
		out.Set(reflect.ValueOf(shared.DeepCopyObject()).Elem())
	case c.form == unstructuredForm:
		if err := copyUnstructured(out.Addr().Interface().(*unstructured.Unstructured), packed); err != nil {
			return c.misfitError(packed, err)
		}
	default:
		if decoded, ok := packed.DecodedAs(c.typ).(client.Object); ok {
			out.Set(reflect.ValueOf(decoded.DeepCopyObject()).Elem())
			break
		}
		out.SetZero()
		if err := c.decoder.DecodeView(packed, out.Addr()); err != nil {
			return c.misfitError(packed, err)
		}
	}
	c.setKind(object)
	return nil
}

// setKind sets the kind of an object that the caller owns. It sets the fields of structs directly.
func (c *converter) setKind(object client.Object) {
	kind := object.GetObjectKind()
	if meta, ok := kind.(*metav1.TypeMeta); ok {
		meta.APIVersion, meta.Kind = c.apiVersion, c.gvk.Kind
		return
	}
	if kind.GroupVersionKind().Empty() { // TypeSettings.Versions allows other versions
		kind.SetGroupVersionKind(c.gvk)
	}
}

// copyUnstructured copies the decoded object if there is one, or decodes the packed one.
func copyUnstructured(out *unstructured.Unstructured, packed dynamicinformer.PackedObject) error {
	if decoded := packed.Decoded(); decoded != nil {
		out.Object = copyContent(decoded)
		return nil
	}
	decoded, err := packed.Decode()
	if err != nil {
		return err
	}
	out.Object = decoded.Object
	return nil
}

// copyContent copies the content of an object. A transform may have put values of any Go type into it.
func copyContent(u *unstructured.Unstructured) map[string]any {
	content, _ := jsontext.CopyValue(u.Object).(map[string]any)
	return content
}

// misfitError wraps a decoding error with the name of the object.
func (c *converter) misfitError(stored any, err error) error {
	name := "an object"
	if m, ok := stored.(metav1.Object); ok {
		name = client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()}.String()
	}
	return fmt.Errorf("%s %s does not fit %s: %w", c.gvk.Kind, name, c.pointer, err)
}
