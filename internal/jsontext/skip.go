package jsontext

// IsSpace reports whether a byte is JSON white space.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// SkipSpace returns the offset of the first byte at or after i that is no white space, or the length.
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
// nested. tooDeep reports that the value exceeds levels, which is not a syntax error.
func Skip(data []byte, i, levels int) (end int, tooDeep bool) {
	// one bit for each open bracket, set for a brace; the innermost in the lowest bit
	var objectBits uint64
	openCount := 0
value:
	if i >= len(data) {
		return ^i, false
	}
	switch c := data[i]; c {
	case '"':
		i = ScanString(data, i+1)
	case '{', '[':
		if openCount == trackedLevels {
			if i, tooDeep = Skip(data, i, levels-openCount); tooDeep {
				return i, true
			}
			break
		}
		if openCount >= levels {
			return ^i, true
		}
		if i++; i < len(data) && data[i] <= ' ' {
			i = SkipSpace(data, i)
		}
		if i < len(data) && data[i] == c+2 { // } and ] follow { and [ after one other character
			i++
			break
		}
		openCount++
		if c == '{' {
			objectBits = objectBits<<1 | 1
			goto key
		}
		objectBits <<= 1
		goto value
	case 't':
		i = ScanLiteral(data, i, "true")
	case 'f':
		i = ScanLiteral(data, i, "false")
	case 'n':
		i = ScanLiteral(data, i, "null")
	default:
		i = scanNumberInRange(data, i)
	}
	if i < 0 {
		return i, false
	}
after:
	if openCount == 0 {
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
		if objectBits&1 == 0 {
			goto value
		}
	case c == '}' && objectBits&1 == 1, c == ']' && objectBits&1 == 0:
		objectBits >>= 1
		openCount--
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

// SkipValue reads the value at start, which may be truncated. It returns false for an invalid,
// truncated or too deeply nested value; truncated reports whether more data can complete the value.
func SkipValue(data []byte, start int) (end int, ok, truncated bool) {
	end, tooDeep := Skip(data, start, maxLevels)
	switch {
	case tooDeep:
		return 0, false, false
	case end < 0:
		return 0, false, ^end >= len(data)
	case end == len(data) && data[end-1]-'0' <= 9: // a number can continue after the end of the data
		return 0, false, true
	}
	return end, true, false
}

func scanNumberInRange(data []byte, i int) int {
	end, numberForm := ScanNumber(data, i)
	if end >= 0 && !IsFloat64(data[i:end], numberForm) {
		return ^i
	}
	return end
}
