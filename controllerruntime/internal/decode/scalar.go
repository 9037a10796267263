package decode

import (
	"encoding/base64"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// quoted returns what the string at i stands for, which is good until the next call.
func (d *document) quoted(i int) (text []byte, end int) {
	if d.at(i) != '"' {
		return nil, failed
	}
	if end, ok := jsontext.PlainText(d.data, i+1); ok {
		return d.data[i+1 : end-1], end
	}
	end, encoded := jsontext.EncodedText(d.data, i+1)
	if end < 0 {
		return nil, failed
	}
	text = d.data[i+1 : end-1]
	if encoded {
		d.text = jsontext.AppendText(d.text[:0], text)
		text = d.text
	}
	return text, end
}

func stringCodec(d *document, i int, p unsafe.Pointer) int {
	if d.at(i) == 'n' {
		return d.null(i)
	}
	text, end := d.string(i)
	*(*string)(p) = text
	return end
}

// string returns the string at i, which does not refer to the data. Nearly all are short, and copied while
// their end is looked for.
func (d *document) string(i int) (text string, end int) {
	if i < 0 || i >= len(d.data) || d.data[i] != '"' {
		return "", failed
	}
	if n, ok := jsontext.CopyPlainText(d.room, d.data, i+1); ok {
		text, d.room = unsafe.String(unsafe.SliceData(d.room), n), d.room[n:]
		return text, i + n + 2
	}
	plain, end := d.quoted(i)
	if end < 0 {
		return "", failed
	}
	return d.own(plain), end
}

// bytesCodec decodes base64.
func bytesCodec(d *document, i int, p unsafe.Pointer) int {
	if d.at(i) == 'n' {
		return d.null(i)
	}
	text, end := d.quoted(i)
	if end < 0 {
		return failed
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(decoded, text)
	if err != nil {
		return failed
	}
	*(*[]byte)(p) = decoded[:n]
	return end
}

func boolCodec(d *document, i int, p unsafe.Pointer) int {
	switch d.at(i) {
	case 't':
		if end := jsontext.Word(d.data, i, "true"); end >= 0 {
			*(*bool)(p) = true
			return end
		}
	case 'f':
		if end := jsontext.Word(d.data, i, "false"); end >= 0 {
			return end
		}
	case 'n':
		return d.null(i)
	}
	return failed
}

// integer reads an integer that fits an int64.
func (d *document) integer(i int) (value int64, end int) {
	end, form := jsontext.Number(d.data, i)
	if end < 0 || form != jsontext.Integer {
		return 0, failed
	}
	value, ok := jsontext.ParseInteger(d.data[i:end])
	if !ok {
		return 0, failed
	}
	return value, end
}

// signed decodes integers. Those of the full width need no check.
func signed[T int | int8 | int16 | int32 | int64](d *document, i int, p unsafe.Pointer) int {
	if d.at(i) == 'n' {
		return d.null(i)
	}
	value, end := d.integer(i)
	if end < 0 || int64(T(value)) != value {
		return failed
	}
	*(*T)(p) = T(value)
	return end
}

// unsigned decodes what fits an int64, too; larger ones are rare.
func unsigned[T uint | uint8 | uint16 | uint32 | uint64 | uintptr](d *document, i int, p unsafe.Pointer) int {
	if d.at(i) == 'n' {
		return d.null(i)
	}
	value, end := d.integer(i)
	if end < 0 || d.at(i) == '-' || uint64(T(value)) != uint64(value) {
		return failed
	}
	*(*T)(p) = T(value)
	return end
}

func float[T float32 | float64](d *document, i int, p unsafe.Pointer) int {
	if d.at(i) == 'n' {
		return d.null(i)
	}
	end, _ := jsontext.Number(d.data, i)
	if end < 0 {
		return failed
	}
	value, err := strconv.ParseFloat(string(d.data[i:end]), int(unsafe.Sizeof(T(0)))*8)
	if err != nil {
		return failed
	}
	*(*T)(p) = T(value)
	return end
}

// scalars are the codecs of simple kinds.
var scalars = map[reflect.Kind]codec{
	reflect.Bool: boolCodec,
	reflect.Int:  signed[int], reflect.Int8: signed[int8], reflect.Int16: signed[int16],
	reflect.Int32: signed[int32], reflect.Int64: signed[int64],
	reflect.Uint: unsigned[uint], reflect.Uint8: unsigned[uint8], reflect.Uint16: unsigned[uint16],
	reflect.Uint32: unsigned[uint32],
	reflect.Uint64: unsigned[uint64], reflect.Uintptr: unsigned[uintptr],
	reflect.Float32: float[float32], reflect.Float64: float[float64],
}
