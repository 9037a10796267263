package controllerruntime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/dynamicinformer"
)

const removesFields = "the object has only the fields that the cache keeps, and the server would remove the others: send a patch, or read it again with GetLive or from the API server"

func (c *cacheClient) reducedError(verb string, object client.Object, problem string) error {
	gk, key, err := c.targetOf(object)
	if err != nil {
		return err
	}
	return &ReducedError{gk, key, verb, problem}
}

// checkPatch returns a *ReducedError for two kinds of patches of a reduced object: a patch that contains the
// object itself, and a patch that may replace a value from which the cache drops a part. Other values are
// safe, because a merge patch contains only the changes.
func (c *cacheClient) checkPatch(object client.Object, patch client.Patch) error {
	if !IsReduced(object) {
		return nil
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var content map[string]any
	if patch.Type() != types.MergePatchType && patch.Type() != types.StrategicMergePatchType ||
		json.Unmarshal(data, &content) != nil {
		if bytes.Contains(data, []byte(ReducedAnnotation)) {
			return c.reducedError("patch", object, removesFields)
		}
		return nil
	}
	metadata, _ := content["metadata"].(map[string]any)
	annotations, patchesAnnotations := metadata["annotations"]
	set, _ := annotations.(map[string]any)
	mark, patchesMark := set[ReducedAnnotation] // null if the annotations are replaced
	if mark != nil || metadata["selfLink"] == ReducedAnnotation {
		return c.reducedError("patch", object, removesFields)
	}
	replaced := ""
	if patchesAnnotations && (annotations == nil || patchesMark) && c.drops(object, ".metadata.annotations..") {
		replaced = ".metadata.annotations"
	} else {
		value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		replaced = c.replacedValue(object, patchedValue{fields: content, value: value,
			goType: c.goTypeOf(object)})
	}
	if replaced == "" {
		return nil
	}
	return c.reducedError("patch", object, fmt.Sprintf("the patch may replace %s, of which the cache drops values "+
		"that the patch does not name: keep it, or read the object again with GetLive or from the API server",
		replaced))
}

// patchedValue is a map of an object that a patch changes.
type patchedValue struct {
	path   string
	fields map[string]any // of the patch
	value  map[string]any // after the patch, as far as the client knows; nil if unknown
	goType reflect.Type   // nil if unknown
}

// replacedValue returns the path of a value that a patch may replace and from which the cache drops values;
// empty if there is none. A merge patch can replace a list, and a strategic merge patch also a map. Of a map
// that the caller has replaced, a patch only removes the keys that the cache has.
func (c *cacheClient) replacedValue(object client.Object, v patchedValue) string {
	if (v.fields["$patch"] == "replace" || v.fields["$retainKeys"] != nil || v.looksReplaced()) &&
		c.drops(object, v.path+"..") {
		return v.path
	}
	for key, value := range v.fields {
		child := patchedValue{path: fmt.Sprintf("%s[%q]", v.path, key), goType: fieldType(v.goType, key)}
		child.value, _ = v.value[key].(map[string]any)
		elements, isList := value.([]any)
		switch {
		case strings.HasPrefix(key, "$"): // a directive of a strategic merge patch
			continue
		case isList && !merges(v.fields, key) && c.drops(object, child.path+".."):
			return child.path
		case isList:
			child.path, child.goType = child.path+"[*]", fieldType(child.goType, "")
		default:
			elements = []any{value}
		}
		for _, element := range elements {
			child.fields, _ = element.(map[string]any)
			if replaced := c.replacedValue(object, child); replaced != "" {
				return replaced
			}
		}
	}
	return ""
}

// looksReplaced reports whether a patch removes keys of a map that is not a struct, and leaves no key
// unchanged. A patch for a removed key, and one for another map, are then equal.
func (v patchedValue) looksReplaced() bool {
	if v.goType != nil && v.goType.Kind() == reflect.Struct {
		return false
	}
	removes := false
	for _, value := range v.fields {
		removes = removes || value == nil
	}
	for key := range v.value {
		if _, changed := v.fields[key]; !changed {
			return false
		}
	}
	return removes
}

// merges reports whether a strategic merge patch merges a list instead of replacing it. Such a patch has the
// directive $setElementOrder, or an element with $patch: delete.
func merges(fields map[string]any, list string) bool {
	_, orders := fields["$setElementOrder/"+list]
	elements, _ := fields[list].([]any)
	return orders || slices.ContainsFunc(elements, func(element any) bool {
		directives, _ := element.(map[string]any)
		return directives["$patch"] == "delete"
	})
}

// drops reports whether the cache may drop values of a path in objects like object.
func (c *cacheClient) drops(object client.Object, path string) bool {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return true
	}
	r, _ := c.cache.lookup(resourceKey{gvk, convert.FormOf(object)})
	if r == nil {
		return true
	}
	keptFields := object.GetAnnotations()[ReducedAnnotation]
	return slices.ContainsFunc(r.allInformers(), func(v *scopedInformer) bool {
		// With other fields, the settings have changed since the object was read.
		return v.informer().KeptFields() != keptFields || v.drops(path)
	})
}

// goTypeOf returns the Go type of an object, also of an unstructured one; nil if there is none.
func (c *cacheClient) goTypeOf(object client.Object) reflect.Type {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return nil
	}
	typed, err := c.Scheme().New(gvk)
	if err != nil || convert.FormOf(typed) == convert.Unstructured {
		return nil
	}
	return reflect.TypeOf(typed).Elem()
}

// fieldType returns the Go type of a field with a name in JSON, or of the elements of a map or list. It
// returns nil if the type is unknown, or a type that decides itself about its JSON.
func fieldType(t reflect.Type, name string) reflect.Type {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return withoutPointer(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if tag == name && tag != "" {
				return withoutPointer(field.Type)
			}
			if tag == "" && field.Anonymous {
				if found := fieldType(withoutPointer(field.Type), name); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func withoutPointer(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return nil
	}
	return t
}

// warnOfExtraction warns once for each kind that is applied although its cached objects lack managedFields.
func (c *cacheClient) warnOfExtraction(ctx context.Context, applied client.Object) {
	gvk, _ := c.GroupVersionKindFor(applied) // the write reports the error
	for _, r := range c.cache.resourcesOf(gvk) {
		drops := func(i *dynamicinformer.Informer) bool { return i.Drops(".metadata.managedFields") }
		if !slices.ContainsFunc(r.current.Load().informers(), drops) {
			continue
		}
		if _, warned := c.warned.LoadOrStore(gvk, true); !warned {
			klog.FromContext(ctx).Info("Warning: the cache drops managedFields, so that an apply configuration "+
				"extracted from its objects is empty, and applying it removes fields: extract from an object that "+
				"was read from the API server", "kind", gvk)
		}
	}
}
