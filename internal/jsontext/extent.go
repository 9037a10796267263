package jsontext

// Extent finds the end of an object, array or string that arrives in pieces. It inspects each byte once. It
// neither checks the syntax nor distinguishes braces from square brackets.
type Extent struct {
	depth             int
	inString, escaped bool
}

// delimiters are the bytes outside of strings that an Extent has to inspect.
var delimiters = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// Open reports whether the value has begun and has not ended.
func (e *Extent) Open() bool { return e.depth > 0 || e.inString }

// Advance reads the next piece of the value. It returns the offset after the value, or -1 if it continues.
func (e *Extent) Advance(text []byte) (end int) {
	for i, c := range text {
		switch {
		case e.inString:
			switch {
			case e.escaped:
				e.escaped = false
			case c == '\\':
				e.escaped = true
			case c == '"':
				if e.inString = false; e.depth == 0 {
					return i + 1
				}
			}
		case !delimiters[c]:
		case c == '"':
			e.inString = true
		case c == '{' || c == '[':
			e.depth++
		default:
			if e.depth--; e.depth <= 0 {
				return i + 1
			}
		}
	}
	return -1
}
