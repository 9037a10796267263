package decode

import (
	"encoding/base64"
	"reflect"
	"unsafe"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// unquote returns the unescaped string at i. It is valid until the next call.
func (d *document) unquote(i int) (text []byte, end int) {
	if d.byteAt(i) != '"' {
		return nil, failedOffset
	}
	if end, ok := jsontext.ScanPlain(d.data, i+1); ok {
		return d.data[i+1 : end-1], end
	}
	end, encoded := jsontext.ScanAnyString(d.data, i+1)
	if end < 0 {
		return nil, failedOffset
	}
	text = d.data[i+1 : end-1]
	if encoded {
		d.unescaped = jsontext.AppendUnescaped(d.unescaped[:0], text)
		text = d.unescaped
	}
	return text, end
}

func stringCodec(d *document, i int, p unsafe.Pointer) int {
	if d.byteAt(i) == 'n' {
		return d.null(i)
	}
	text, end := d.string(i)
	*(*string)(p) = text
	return end
}

// string returns the string at i, which does not alias the data. Most strings are short, and copied in the
// same pass that searches their end.
func (d *document) string(i int) (text string, end int) {
	if i < 0 || i >= len(d.data) || d.data[i] != '"' {
		return "", failedOffset
	}
	if n, ok := jsontext.CopyPlainText(d.arena, d.data, i+1); ok {
		text, d.arena = unsafe.String(unsafe.SliceData(d.arena), n), d.arena[n:]
		return text, i + n + 2
	}
	plain, end := d.unquote(i)
	if end < 0 {
		return "", failedOffset
	}
	return d.copyText(plain), end
}

func bytesCodec(d *document, i int, p unsafe.Pointer) int {
	if d.byteAt(i) == 'n' {
		return d.null(i)
	}
	text, end := d.unquote(i)
	if end < 0 {
		return failedOffset
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(decoded, text)
	if err != nil {
		return failedOffset
	}
	*(*[]byte)(p) = decoded[:n]
	return end
}

func boolCodec(d *document, i int, p unsafe.Pointer) int {
	if end := jsontext.ScanLiteral(d.data, i, "true"); end >= 0 {
		*(*bool)(p) = true
		return end
	}
	if end := jsontext.ScanLiteral(d.data, i, "false"); end >= 0 {
		return end
	}
	return d.null(i)
}

func integerCodec[T int | int8 | int16 | int32 | int64](d *document, i int, p unsafe.Pointer) int {
	if d.byteAt(i) == 'n' {
		return d.null(i)
	}
	end, numberForm := jsontext.ScanNumber(d.data, i)
	if end < 0 || numberForm != jsontext.Integer {
		return failedOffset
	}
	value, ok := jsontext.ParseInteger(d.data[i:end])
	if !ok || int64(T(value)) != value {
		return failedOffset
	}
	*(*T)(p) = T(value)
	return end
}

// scalars has the scalar kinds that APIs of Kubernetes use.
var scalars = map[reflect.Kind]codec{
	reflect.Bool: boolCodec,
	reflect.Int:  integerCodec[int], reflect.Int8: integerCodec[int8], reflect.Int16: integerCodec[int16],
	reflect.Int32: integerCodec[int32], reflect.Int64: integerCodec[int64],
}
