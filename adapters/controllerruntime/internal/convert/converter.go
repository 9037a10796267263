// Package convert converts the stored objects of a cache to the forms that readers and handlers use: structs,
// unstructured objects and metadata. It recognizes handlers that need no decoded objects.
package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
	goruntime "runtime"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsjson "sigs.k8s.io/json"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/decode"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// Form is a Go representation of API objects: a struct, unstructured or only metadata.
type Form int

const (
	// Typed is the Go type that the scheme has for a kind.
	Typed Form = iota
	// Unstructured is *unstructured.Unstructured.
	Unstructured
	// Metadata is *metav1.PartialObjectMetadata.
	Metadata
)

func FormOf(object runtime.Object) Form {
	switch object.(type) {
	case runtime.Unstructured:
		return Unstructured
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return Metadata
	}
	return Typed
}

// Converter converts the stored objects of a type to one form. A stored object is a
// dynamicinformer.PackedObject, an *unstructured.Unstructured if objects are stored decoded, or the result of
// a transform.
type Converter struct {
	form Form
	gvk  schema.GroupVersionKind
	// typ is the struct that objects are decoded into, Pointer a pointer to it. typ and decoder are nil for
	// Unstructured.
	typ, Pointer reflect.Type
	decoder      *decode.Decoder
	apiVersion   string
}

// New returns the converter of a kind to a form.
func New(scheme *runtime.Scheme, gvk schema.GroupVersionKind, form Form) (*Converter, error) {
	conv := &Converter{form: form, gvk: gvk, apiVersion: gvk.GroupVersion().String()}
	switch form {
	case Unstructured:
		conv.Pointer = reflect.TypeFor[*unstructured.Unstructured]()
		return conv, nil
	case Metadata:
		conv.Pointer = reflect.TypeFor[*metav1.PartialObjectMetadata]()
	default:
		example, err := scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		if conv.Pointer = reflect.TypeOf(example); conv.Pointer.Kind() != reflect.Pointer ||
			conv.Pointer.Elem().Kind() != reflect.Struct {
			return nil, fmt.Errorf("%s: a %T cannot be read", gvk, example)
		}
		if _, ok := example.(client.Object); !ok {
			return nil, fmt.Errorf("%s: a %T has no metadata", gvk, example)
		}
	}
	conv.typ = conv.Pointer.Elem()
	conv.decoder = decode.DecoderFor(conv.typ)
	return conv, nil
}

// setSharedKind sets the kind of a shared object as client-go does: typed objects have none.
func (c *Converter) setSharedKind(object client.Object) {
	var gvk schema.GroupVersionKind
	if c.form == Metadata {
		gvk = c.gvk
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
}

// SharedObject returns the object that all readers and handlers share. They must not change it.
func (c *Converter) SharedObject(stored any) (client.Object, error) {
	packed, isPacked := stored.(dynamicinformer.PackedObject)
	if c.form == Unstructured {
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
	object, err := c.decode(func(value reflect.Value) error { return c.decoder.DecodeView(packed, value) })
	if err != nil {
		return nil, c.misfitError(packed, err)
	}
	return packed.KeepDecoded(object).(client.Object), nil
}

// decode returns a new struct that read fills in.
func (c *Converter) decode(read func(value reflect.Value) error) (client.Object, error) {
	value := reflect.New(c.typ)
	if err := read(value); err != nil {
		return nil, err
	}
	object := value.Interface().(client.Object)
	c.setSharedKind(object)
	return object, nil
}

// Parse decodes JSON into a new object.
func (c *Converter) Parse(json []byte) (client.Object, error) {
	if c.form == Unstructured {
		u := &unstructured.Unstructured{}
		return u, u.UnmarshalJSON(json)
	}
	return c.decode(func(value reflect.Value) error { return c.decoder.Decode(json, value) })
}

// convert converts a stored object that is not packed. It converts through JSON, because
// runtime.DefaultUnstructuredConverter truncates integers that do not fit, and ignores
// encoding.TextUnmarshaler.
func (c *Converter) convert(stored any) (client.Object, error) {
	u, ok := stored.(*unstructured.Unstructured)
	if !ok {
		return c.checkForm(stored)
	}
	text, err := json.Marshal(u.Object)
	if err == nil {
		var object client.Object
		if object, err = c.Parse(text); err == nil {
			return object, nil
		}
	}
	return nil, c.misfitError(u, err)
}

// checkForm returns a stored object that already has the converter's form, and an error for any other object.
func (c *Converter) checkForm(stored any) (client.Object, error) {
	object, ok := stored.(client.Object)
	if !ok {
		return nil, fmt.Errorf("cache contained %T, which is not an Object", stored)
	}
	if reflect.TypeOf(stored) != c.Pointer {
		return nil, fmt.Errorf("cache had type %T, but %s was asked for", stored, c.Pointer)
	}
	return object, nil
}

// Result is an object that a read returns.
type Result struct {
	Stored any
	Shared bool // readers get the stored object itself, not a copy
	// KeptFields are the fields that a reduced object has; empty for a whole object.
	KeptFields string
}

// Reduced reports whether the object lacks fields.
func (r Result) Reduced() bool { return r.KeptFields != "" }

// Write writes a found object into out, a struct: a copy, or if share is set one that shares maps and slices
// with the cache.
func (c *Converter) Write(out reflect.Value, res Result, share bool) error {
	if !share && !res.Shared {
		err := c.WriteCopy(out, res.Stored)
		if err == nil && res.Reduced() {
			mark(out.Addr().Interface().(client.Object), res.KeptFields)
		}
		return err
	}
	object, err := c.SharedObject(res.Stored)
	if err != nil {
		return err
	}
	if res.Reduced() {
		object = MarkedCopy(object, res.KeptFields)
	}
	out.Set(reflect.ValueOf(object).Elem())
	return nil
}

// WriteCopy writes a copy into out, a struct. The caller owns it.
func (c *Converter) WriteCopy(out reflect.Value, stored any) error {
	object := out.Addr().Interface().(client.Object)
	packed, isPacked := stored.(dynamicinformer.PackedObject)
	switch {
	case !isPacked:
		shared, err := c.SharedObject(stored)
		if err != nil {
			return err
		}
		if u, ok := shared.(*unstructured.Unstructured); ok {
			out.Addr().Interface().(*unstructured.Unstructured).Object = copyContent(u)
			break
		}
		out.Set(reflect.ValueOf(shared.DeepCopyObject()).Elem())
	case c.form == Unstructured:
		u := out.Addr().Interface().(*unstructured.Unstructured)
		if decoded := packed.Decoded(); decoded != nil {
			u.Object = copyContent(decoded)
			break
		}
		decoded, err := packed.Decode()
		if err != nil {
			return c.misfitError(packed, err)
		}
		u.Object = decoded.Object
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

// FillList writes the found objects into a list: shared objects if share is set, otherwise copies. Items that
// are structs are decoded in place.
func (c *Converter) FillList(list client.ObjectList, results []Result, share bool) error {
	itemsPointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(itemsPointer).Elem()
	if items.Type().Elem() != c.Pointer.Elem() {
		return c.fillPointers(list, results, share)
	}
	filled := reflect.MakeSlice(items.Type(), len(results), len(results))
	for k, found := range results {
		if err := c.Write(filled.Index(k), found, share); err != nil {
			return err
		}
	}
	items.Set(filled)
	return nil
}

// fillPointers is FillList for lists of pointers, interfaces and raw extensions.
func (c *Converter) fillPointers(list client.ObjectList, results []Result, share bool) error {
	objects := make([]runtime.Object, len(results))
	for k, res := range results {
		if (share || res.Shared) && !res.Reduced() {
			object, err := c.SharedObject(res.Stored)
			if err != nil {
				return err
			}
			objects[k] = object
			continue
		}
		value := reflect.New(c.Pointer.Elem())
		if err := c.Write(value.Elem(), res, share); err != nil {
			return err
		}
		objects[k] = value.Interface().(runtime.Object)
	}
	return meta.SetList(list, objects)
}

// setKind sets the kind of an object that the caller owns. It sets the fields of structs directly.
func (c *Converter) setKind(object client.Object) {
	kind := object.GetObjectKind()
	if typeMeta, ok := kind.(*metav1.TypeMeta); ok {
		typeMeta.APIVersion, typeMeta.Kind = c.apiVersion, c.gvk.Kind
		return
	}
	if kind.GroupVersionKind().Empty() { // TypeSettings.Versions allows other versions
		kind.SetGroupVersionKind(c.gvk)
	}
}

// copyContent copies the content of an object. A transform may have put values of any Go type into it.
func copyContent(u *unstructured.Unstructured) map[string]any {
	content, _ := jsontext.CopyValue(u.Object).(map[string]any)
	return content
}

// misfitError wraps a decoding error with the name of the object.
func (c *Converter) misfitError(stored any, err error) error {
	name := "an object"
	if m, ok := stored.(metav1.Object); ok {
		name = client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()}.String()
	}
	return fmt.Errorf("%s %s does not fit %s: %w", c.gvk.Kind, name, c.Pointer, err)
}

// sourceLineOf returns the position of a function in the source code.
func sourceLineOf(transform toolscache.TransformFunc) string {
	pc := reflect.ValueOf(transform).Pointer()
	f := goruntime.FuncForPC(pc)
	if f == nil {
		return ""
	}
	file, line := f.FileLine(pc)
	return fmt.Sprint(file, ":", line)
}

// stripSourceLine is the position of the function that cache.TransformStripManagedFields returns.
var stripSourceLine = sync.OnceValue(func() string {
	return sourceLineOf(cache.TransformStripManagedFields())
})

// StripsManagedFields reports whether a transform is cache.TransformStripManagedFields. It compares
// positions in the source, because the compiler may create several copies of the function. If it is not
// recognized, it runs like any other transform.
func StripsManagedFields(transform toolscache.TransformFunc) bool {
	at := sourceLineOf(transform)
	return at != "" && at == stripSourceLine()
}

// Transform wraps a transform that expects objects of the form. An object that does not fit the form is
// stored unchanged.
func (c *Converter) Transform(inner toolscache.TransformFunc) toolscache.TransformFunc {
	if c.form == Unstructured {
		return inner
	}
	return func(in any) (any, error) {
		if _, ok := in.(*unstructured.Unstructured); !ok {
			return inner(in)
		}
		object, err := c.convert(in)
		if err != nil {
			// readers get the error; returning it here would keep the previous object.
			return in, nil
		}
		out, err := inner(object)
		if err != nil || reflect.TypeOf(out) != c.Pointer {
			return out, err // readers get an error for other types
		}
		u := &unstructured.Unstructured{}
		text, err := json.Marshal(out)
		if err == nil {
			err = sigsjson.UnmarshalCaseSensitivePreserveInts(text, &u.Object)
		}
		if err != nil {
			return nil, c.misfitError(out, err)
		}
		if kind := out.(client.Object).GetObjectKind().GroupVersionKind(); kind.Empty() {
			u.SetGroupVersionKind(c.gvk)
		}
		return u, nil
	}
}
