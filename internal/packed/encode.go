package packed

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// appendValue appends JSON from which decoding restores the same value. It returns false for values without
// such JSON: types that decoding never yields, invalid UTF-8 and NaN.
func appendValue(dst []byte, value any, depth int) ([]byte, bool) {
	if depth >= maxDepth {
		return dst, false
	}
	switch value := value.(type) {
	case nil:
		return append(dst, "null"...), true
	case bool:
		return strconv.AppendBool(dst, value), true
	case string:
		return appendString(dst, value)
	case int64:
		return strconv.AppendInt(dst, value, 10), true
	case float64:
		return appendFloat(dst, value)
	case map[string]any:
		return appendMap(dst, value, depth)
	case []any:
		if value == nil {
			return dst, false
		}
		dst = append(dst, '[')
		for i, element := range value {
			if i > 0 {
				dst = append(dst, ',')
			}
			var ok bool
			if dst, ok = appendValue(dst, element, depth+1); !ok {
				return dst, false
			}
		}
		return append(dst, ']'), true
	}
	return dst, false
}

func appendMap(dst []byte, content map[string]any, depth int) ([]byte, bool) {
	if content == nil {
		return dst, false
	}
	var keyBuffer [16]string
	keys := keyBuffer[:0]
	for key := range content {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		var ok bool
		if dst, ok = appendString(dst, key); !ok {
			return dst, false
		}
		dst = append(dst, ':')
		if dst, ok = appendValue(dst, content[key], depth+1); !ok {
			return dst, false
		}
	}
	return append(dst, '}'), true
}

// appendFloat appends f with a point or an exponent, so that it is decoded as a float64 again.
func appendFloat(dst []byte, f float64) ([]byte, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, false
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if format == 'f' && !slices.Contains(dst[start:], '.') {
		dst = append(dst, ".0"...)
	}
	return dst, true
}

const hexDigits = "0123456789abcdef"

func appendString(dst []byte, text string) ([]byte, bool) {
	dst = append(dst, '"')
	from, ascii := 0, true
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			ascii = ascii && c < utf8.RuneSelf
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, text[from:]...), '"'), ascii || utf8.ValidString(text)
}

// appendOriginal appends the encoding/json form of an object that could not be packed.
func appendOriginal(dst []byte, u *unstructured.Unstructured) ([]byte, error) {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", keyOf(u.GetNamespace(), u.GetName()), err)
	}
	return append(dst, text...), nil
}
