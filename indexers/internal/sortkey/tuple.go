package sortkey

import "strings"

// In a tuple a part ends with 0 1, and a 0 within a part is followed by 255, so that the end of a part sorts
// before any longer part.
const (
	partEnd     = "\x00\x01"
	escapedZero = "\x00\xff"
)

// AppendPart appends a part with its terminator.
func AppendPart(dst []byte, part string) []byte { return append(AppendOpenPart(dst, part), partEnd...) }

// AppendOpenPart appends a part without terminator, as a prefix.
func AppendOpenPart(dst []byte, part string) []byte {
	for {
		before, after, found := strings.Cut(part, "\x00")
		dst = append(dst, before...)
		if !found {
			return dst
		}
		dst = append(dst, escapedZero...)
		part = after
	}
}

// Parts decodes a tuple. It returns false for an invalid one.
func Parts(key string) (parts []string, ok bool) {
	var part strings.Builder
	for key != "" {
		before, after, found := strings.Cut(key, "\x00")
		if !found || after == "" {
			return nil, false
		}
		part.WriteString(before)
		switch after[0] {
		case 0xff:
			part.WriteByte(0)
		case 1:
			parts = append(parts, part.String())
			part.Reset()
		default:
			return nil, false
		}
		key = after[1:]
	}
	return parts, part.Len() == 0
}

// PrefixEnd returns the smallest text greater than all texts with a prefix; "" if there is none.
func PrefixEnd(prefix string) string {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == 0xff {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return ""
	}
	b[len(b)-1]++
	return string(b)
}
