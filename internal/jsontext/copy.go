package jsontext

import (
	"maps"
	"reflect"
	"slices"
)

// CopyValue copies the maps and lists of a value. Unlike runtime.DeepCopyJSONValue, which panics for an int
// or a []string, it accepts any value. It shares the rest, such as structs and targets of pointers.
func CopyValue(value any) any {
	switch value := value.(type) {
	case nil, string, bool, int64, float64:
		return value
	case map[string]any:
		copied := maps.Clone(value)
		for k, v := range value {
			copied[k] = CopyValue(v)
		}
		return copied
	case []any:
		copied := slices.Clone(value)
		for i, v := range value {
			copied[i] = CopyValue(v)
		}
		return copied
	}
	return copyOther(reflect.ValueOf(value)).Interface()
}

// copyOther copies other types of maps and lists.
func copyOther(value reflect.Value) reflect.Value {
	switch value.Kind() {
	case reflect.Interface:
		if !value.IsNil() {
			return reflect.ValueOf(CopyValue(value.Interface()))
		}
	case reflect.Map:
		if value.IsNil() {
			break
		}
		copied := reflect.MakeMapWithSize(value.Type(), value.Len())
		for entries := value.MapRange(); entries.Next(); {
			copied.SetMapIndex(entries.Key(), copyOther(entries.Value()))
		}
		return copied
	case reflect.Slice:
		if value.IsNil() {
			break
		}
		copied := reflect.MakeSlice(value.Type(), value.Len(), value.Len())
		for k := range value.Len() {
			copied.Index(k).Set(copyOther(value.Index(k)))
		}
		return copied
	}
	return value
}
