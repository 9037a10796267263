package indexers

import (
	"math"
	"strconv"
	"strings"
)

// Null is the value under which an index with "missing: null" holds objects without a value. No
// object has it otherwise: a text that consists of this one character is left out of indexes.
const Null = "\x00"

// Value builds the value to look up in an index. One part stands for itself. Several parts, which are
// those of a composite index in the order of [Index.Keys], are joined by "/", with a backslash before
// each "/" and "\" within a part. So different parts always give different values:
//
//	Value("a", "b")   // a/b
//	Value("a/b", "c") // a\/b/c
//
// A part may be [Null]. No part at all gives "".
func Value(parts ...string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('/')
		}
		appendPart(&b, p)
	}
	return b.String()
}

func appendPart(b *strings.Builder, p string) {
	for {
		i := strings.IndexAny(p, `/\`)
		if i < 0 {
			b.WriteString(p)
			return
		}
		b.WriteString(p[:i])
		b.WriteByte('\\')
		b.WriteByte(p[i])
		p = p[i+1:]
	}
}

// scalarText gives the text of a value as indexes hold it; ok is false for lists, maps and all that
// JSON does not have. null is not a value and must not get here.
func scalarText(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, v != Null
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "", false
		}
		return formatFloat(v), true
	}
	return "", false
}
