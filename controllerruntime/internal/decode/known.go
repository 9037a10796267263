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

// knownTypes are the types of apimachinery that read JSON by themselves. They keep nothing of what they are given.
var knownTypes = map[reflect.Type]codec{
	reflect.TypeFor[metav1.Time]():          timeCodec,
	reflect.TypeFor[metav1.MicroTime]():     trusted[metav1.MicroTime],
	reflect.TypeFor[metav1.Duration]():      trusted[metav1.Duration],
	reflect.TypeFor[metav1.FieldsV1]():      trusted[metav1.FieldsV1],
	reflect.TypeFor[runtime.RawExtension](): trusted[runtime.RawExtension],
	reflect.TypeFor[resource.Quantity]():    trusted[resource.Quantity],
	reflect.TypeFor[intstr.IntOrString]():   trusted[intstr.IntOrString],
}

// trusted leaves a value to the method of its type, with the JSON as it is.
func trusted[T any](d *document, i int, p unsafe.Pointer) int {
	end := d.skip(i)
	if end < 0 || any((*T)(p)).(json.Unmarshaler).UnmarshalJSON(d.data[i:end:end]) != nil {
		return failed
	}
	return end
}

// timeLayout is how API servers write times.
const timeLayout = `"2006-01-02T15:04:05Z"`

// timeCodec reads times as API servers write them, and leaves others to their type.
func timeCodec(d *document, i int, p unsafe.Pointer) int {
	if end := i + len(timeLayout); i >= 0 && end <= len(d.data) {
		if t, ok := parseTime(d.data[i:end]); ok {
			(*metav1.Time)(p).Time = t.Local()
			return end
		}
	}
	return trusted[metav1.Time](d, i, p)
}

// parseTime reads a time in timeLayout.
func parseTime(text []byte) (time.Time, bool) {
	for k := range text {
		if c := timeLayout[k]; c-'0' > 9 && text[k] != c || c-'0' <= 9 && text[k]-'0' > 9 {
			return time.Time{}, false
		}
	}
	number := func(at, digits int) (n int) {
		for _, c := range text[at : at+digits] {
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, day, hour, minute, second := number(1, 4), number(6, 2), number(9, 2), number(12, 2), number(15, 2), number(18, 2)
	if month < 1 || month > 12 || day < 1 || day > 28 && day > daysIn(year, time.Month(month)) || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC), true
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
