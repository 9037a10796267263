package jsontext

// IsSpace reports whether a byte is white space between the tokens of JSON.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// Space returns the offset of the first byte from i on that is not white space; the length of the data if
// there is none.
func Space(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && IsSpace(data[i]) {
		i++
	}
	return i
}

// bitsOfDepth is how many levels of nesting one call of Skip keeps track of.
const bitsOfDepth = 64

// Word reads the word at i, which is true, false or null.
func Word(data []byte, i int, word string) int {
	for k := range len(word) {
		if i+k >= len(data) || data[i+k] != word[k] {
			return ^(i + k)
		}
	}
	return i + len(word)
}

// Colon reads a colon with the white space around it.
func Colon(data []byte, i int) int {
	if i < len(data) && data[i] <= ' ' {
		i = Space(data, i)
	}
	if i >= len(data) || data[i] != ':' {
		return ^i
	}
	if i++; i < len(data) && data[i] <= ' ' {
		i = Space(data, i)
	}
	return i
}

// Skip reads the value at i, whatever it is, checking all of it. levels is how many more objects and arrays
// may be open at once; deep says that they are not enough, which is no failure of the JSON.
func Skip(data []byte, i, levels int) (end int, deep bool) {
	var objects uint64 // the open brackets from the innermost on; a set bit is a brace
	open := 0
value:
	if i >= len(data) {
		return ^i, false
	}
	switch c := data[i]; c {
	case '"':
		i = Text(data, i+1)
	case '{', '[':
		if open == bitsOfDepth {
			if i, deep = Skip(data, i, levels-open); deep {
				return i, true
			}
			break
		}
		if open >= levels {
			return ^i, true
		}
		if i++; i < len(data) && data[i] <= ' ' {
			i = Space(data, i)
		}
		if i < len(data) && data[i] == c+2 { // both closing brackets come two after their opening ones
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
		i = Word(data, i, "true")
	case 'f':
		i = Word(data, i, "false")
	case 'n':
		i = Word(data, i, "null")
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
		if i = Space(data, i); i >= len(data) {
			return ^i, false
		}
	}
	switch c := data[i]; {
	case c == ',':
		if i++; i < len(data) && data[i] <= ' ' {
			i = Space(data, i)
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
	if i = Text(data, i+1); i < 0 {
		return i, false
	}
	if i+1 < len(data) && data[i] == ':' && data[i+1] > ' ' {
		i++
	} else if i = Colon(data, i); i < 0 {
		return i, false
	}
	goto value
}

// maxLevels is how deep SkipValue goes: half of what the JSON decoder of API servers does.
const maxLevels = 5000

// SkipValue reads the value at start, whose text may not be complete. Where it is not ok, more says that the
// reason may be that the data ends too early. Values nested too deeply are not ok either.
func SkipValue(data []byte, start int) (end int, ok, more bool) {
	end, deep := Skip(data, start, maxLevels)
	switch {
	case deep:
		return 0, false, false
	case end < 0:
		return 0, false, ^end >= len(data)
	case end == len(data) && data[end-1]-'0' <= 9: // a number can go on where the data ends
		return 0, false, true
	}
	return end, true, false
}

func numberInRange(data []byte, i int) int {
	end, form := Number(data, i)
	if end >= 0 && !InRange(data[i:end], form) {
		return ^i
	}
	return end
}
