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
	reflect.TypeFor[metav1.Duration]():      durationCodec,
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

// timeLayout is the format in which API servers write times.
const timeLayout = `"2006-01-02T15:04:05Z"`

// timeCodec decodes times in timeLayout, and falls back to UnmarshalJSON.
func timeCodec(d *document, i int, p unsafe.Pointer) int {
	if end := i + len(timeLayout); i >= 0 && end <= len(d.data) {
		if t, ok := parseTime(d.data[i:end]); ok {
			(*metav1.Time)(p).Time = t
			return end
		}
	}
	return unmarshalAliased[metav1.Time](d, i, p)
}

func timePointer(d *document, i int, p unsafe.Pointer) int {
	if d.byteAt(i) == 'n' {
		return d.null(i)
	}
	if len(d.timePool) == 0 {
		d.timePool = make([]metav1.Time, timesSize)
	}
	made := &d.timePool[0]
	end := timeCodec(d, i, unsafe.Pointer(made))
	if end >= 0 {
		d.timePool = d.timePool[1:]
		*(**metav1.Time)(p) = made
	}
	return end
}

func parseTime(text []byte) (time.Time, bool) {
	_ = text[len(timeLayout)-1]
	if text[0] != '"' || text[5] != '-' || text[8] != '-' || text[11] != 'T' || text[14] != ':' ||
		text[17] != ':' || text[20] != 'Z' || text[21] != '"' {
		return time.Time{}, false
	}
	century, ok1 := twoDigits(text[1], text[2])
	year, ok2 := twoDigits(text[3], text[4])
	month, ok3 := twoDigits(text[6], text[7])
	day, ok4 := twoDigits(text[9], text[10])
	hour, ok5 := twoDigits(text[12], text[13])
	minute, ok6 := twoDigits(text[15], text[16])
	second, ok7 := twoDigits(text[18], text[19])
	year += century * 100
	switch {
	case !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6 &&
		ok7), month < 1, month > 12, day < 1, hour > 23, minute > 59, second > 59:
		return time.Time{}, false
	case day > 28 && day > daysIn(year, time.Month(month)):
		return time.Time{}, false
	}
	return time.Unix(int64(daysBefore(year, month, day)*24+hour)*3600+int64(minute*60+second), 0), true
}

func twoDigits(tens, ones byte) (n int, ok bool) {
	tens, ones = tens-'0', ones-'0'
	return int(tens)*10 + int(ones), tens <= 9 && ones <= 9
}

// daysBefore returns the number of days from 1970-01-01 to a date. Internally years begin in March, so that
// the leap day is the last day.
func daysBefore(year, month, day int) int {
	const daysUntil1970 = 719468 // since March 1 of the year 0
	if month -= 3; month < 0 {
		month += 12
		year--
	}
	year += 400 // avoids negative years
	return year*365 + year/4 - year/100 + year/400 + (month*153+2)/5 +
		day - 1 - daysUntil1970 - daysIn400Years
}

const daysIn400Years = 400*365 + 97

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// durationCodec decodes durations with time.ParseDuration.
func durationCodec(d *document, i int, p unsafe.Pointer) int {
	text, end := d.unquote(i)
	if end < 0 {
		return unmarshalAliased[metav1.Duration](d, i, p)
	}
	duration, err := time.ParseDuration(string(text))
	if err != nil {
		return failedOffset
	}
	(*metav1.Duration)(p).Duration = duration
	return end
}
