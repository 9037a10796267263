package jsontext

// IsSpace reports whether a byte is JSON white space.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// SkipSpace returns the offset of the first byte at or after i that is not white space, or the length of the
// data.
func SkipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && IsSpace(data[i]) {
		i++
	}
	return i
}

// trackedLevels is the number of nesting levels that one call of Skip tracks.
const trackedLevels = 64

// ScanLiteral reads the literal true, false or null at i.
func ScanLiteral(data []byte, i int, word string) int {
	for k := range len(word) {
		if i+k >= len(data) || data[i+k] != word[k] {
			return ^(i + k)
		}
	}
	return i + len(word)
}

// SkipColon reads a colon and the white space around it.
func SkipColon(data []byte, i int) int {
	if i < len(data) && data[i] <= ' ' {
		i = SkipSpace(data, i)
	}
	if i >= len(data) || data[i] != ':' {
		return ^i
	}
	if i++; i < len(data) && data[i] <= ' ' {
		i = SkipSpace(data, i)
	}
	return i
}

// Skip reads and checks the value at i. levels is the number of further objects and arrays that may be
// nested; deep reports that the value exceeds it, which is not a syntax error.
func Skip(data []byte, i, levels int) (end int, deep bool) {
	// one bit for each open bracket, set for a brace; the innermost in the lowest bit
	var objects uint64
	open := 0
value:
	if i >= len(data) {
		return ^i, false
	}
	switch c := data[i]; c {
	case '"':
		i = ScanString(data, i+1)
	case '{', '[':
		if open == trackedLevels {
			if i, deep = Skip(data, i, levels-open); deep {
				return i, true
			}
			break
		}
		if open >= levels {
			return ^i, true
		}
		if i++; i < len(data) && data[i] <= ' ' {
			i = SkipSpace(data, i)
		}
		if i < len(data) && data[i] == c+2 { // } and ] follow { and [ after one other character
			i++
			break
		}
		open++
		if c == '{' {
			objects = objects<<1 | 1
			goto key
		}
		objects <<= 1
		goto value
	case 't':
		i = ScanLiteral(data, i, "true")
	case 'f':
		i = ScanLiteral(data, i, "false")
	case 'n':
		i = ScanLiteral(data, i, "null")
	default:
		i = numberInRange(data, i)
	}
	if i < 0 {
		return i, false
	}
after:
	if open == 0 {
		return i, false
	}
	if i >= len(data) || data[i] <= ' ' {
		if i = SkipSpace(data, i); i >= len(data) {
			return ^i, false
		}
	}
	switch c := data[i]; {
	case c == ',':
		if i++; i < len(data) && data[i] <= ' ' {
			i = SkipSpace(data, i)
		}
		if objects&1 == 0 {
			goto value
		}
	case c == '}' && objects&1 == 1, c == ']' && objects&1 == 0:
		objects >>= 1
		open--
		i++
		goto after
	default:
		return ^i, false
	}
key:
	if i >= len(data) || data[i] != '"' {
		return ^i, false
	}
	if i = ScanString(data, i+1); i < 0 {
		return i, false
	}
	if i+1 < len(data) && data[i] == ':' && data[i+1] > ' ' {
		i++
	} else if i = SkipColon(data, i); i < 0 {
		return i, false
	}
	goto value
}

// maxLevels is the nesting limit of SkipValue: half of the limit of API servers.
const maxLevels = 5000

// SkipValue reads the value at start, which may be truncated. If ok is false, more reports whether the
// data may be truncated. Values that are nested too deeply are not ok either.
func SkipValue(data []byte, start int) (end int, ok, more bool) {
	end, deep := Skip(data, start, maxLevels)
	switch {
	case deep:
		return 0, false, false
	case end < 0:
		return 0, false, ^end >= len(data)
	case end == len(data) && data[end-1]-'0' <= 9: // a number can continue after the end of the data
		return 0, false, true
	}
	return end, true, false
}

func numberInRange(data []byte, i int) int {
	end, numberForm := ScanNumber(data, i)
	if end >= 0 && !IsFloat64(data[i:end], numberForm) {
		return ^i
	}
	return end
}
