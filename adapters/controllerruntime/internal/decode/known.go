package decode

import (
	"encoding/json"
	"reflect"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// knownTypes are types of apimachinery with UnmarshalJSON methods. They do not retain the JSON.
var knownTypes = map[reflect.Type]codec{
	reflect.TypeFor[metav1.Time]():          timeCodec,
	reflect.TypeFor[metav1.MicroTime]():     unmarshalAliased[metav1.MicroTime],
	reflect.TypeFor[metav1.Duration]():      unmarshalAliased[metav1.Duration],
	reflect.TypeFor[metav1.FieldsV1]():      unmarshalAliased[metav1.FieldsV1],
	reflect.TypeFor[runtime.RawExtension](): unmarshalAliased[runtime.RawExtension],
	reflect.TypeFor[resource.Quantity]():    unmarshalAliased[resource.Quantity],
	reflect.TypeFor[intstr.IntOrString]():   unmarshalAliased[intstr.IntOrString],
}

// unmarshalAliased calls the UnmarshalJSON method of T without copying the JSON.
func unmarshalAliased[T any](d *document, i int, p unsafe.Pointer) int {
	end := d.skip(i)
	if end < 0 || any((*T)(p)).(json.Unmarshaler).UnmarshalJSON(d.data[i:end:end]) != nil {
		return failedOffset
	}
	return end
}

// timeCodec decodes a time as API servers write it, and any other with UnmarshalJSON.
func timeCodec(d *document, i int, p unsafe.Pointer) int {
	const layout = `"2006-01-02T15:04:05Z"`
	if end := i + len(layout); i >= 0 && end <= len(d.data) && d.data[end-1] == '"' {
		var t time.Time
		if t.UnmarshalText(d.data[i+1:end-1]) == nil {
			(*metav1.Time)(p).Time = t.Local()
			return end
		}
	}
	return unmarshalAliased[metav1.Time](d, i, p)
}
