package codec

// bracketScanner finds the end of a JSON object by counting brackets. It accepts the text in pieces. It
// neither checks the syntax nor distinguishes braces from square brackets.
type bracketScanner struct {
	depth    int
	inString bool
	escaped  bool // the last byte was a backslash inside a string
}

// scanState is the result of a bracketScanner.
type scanState int

const (
	scanIncomplete  scanState = iota // the object continues after the text
	scanComplete                     // the object ended
	scanUnsupported                  // a control character, or too many brackets
)

// maxBrackets is the depth from which on objects are left to the stock serializer. It counts the depth of an
// event and its object together.
const maxBrackets = 5000

// inspectedBytes contains the bytes that a bracketScanner has to inspect outside of strings. API servers send
// no control characters within an event, so text with them is pretty-printed or not JSON.
var inspectedBytes = func() (table [256]bool) {
	for c := range byte(' ') {
		table[c] = true
	}
	for _, c := range `"{}[]` {
		table[c] = true
	}
	return table
}()

// advance reads text until the object ends, and returns the number of bytes read.
func (s *bracketScanner) advance(text []byte) (int, scanState) {
	for i, c := range text {
		if s.inString {
			switch {
			case c < ' ': // also after a backslash
				return i, scanUnsupported
			case s.escaped:
				s.escaped = false
			case c == '"':
				s.inString = false
			case c == '\\':
				s.escaped = true
			}
			continue
		}
		if !inspectedBytes[c] {
			continue
		}
		switch c {
		case '"':
			s.inString = true
		case '{', '[':
			if s.depth++; s.depth > maxBrackets {
				return i, scanUnsupported
			}
		case '}', ']':
			if s.depth--; s.depth <= 0 {
				return i + 1, scanComplete
			}
		default:
			return i, scanUnsupported
		}
	}
	return len(text), scanIncomplete
}
