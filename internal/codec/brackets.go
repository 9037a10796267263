package codec

// bracketScanner finds the end of a JSON object by counting brackets. It takes the text in pieces. It does
// not check the syntax, and does not tell braces from square brackets.
type bracketScanner struct {
	depth    int
	inString bool
	escaped  bool // the last byte was a backslash inside a string
}

// scanState is what a bracketScanner found.
type scanState int

const (
	scanIncomplete scanState = iota // all was read, and the object goes on
	scanComplete                    // the object ended
	scanUnusual                     // a control character, or too many brackets
)

// maxBrackets is the depth from which on objects are left to the stock serializer, which counts the depth of
// an event and its object together.
const maxBrackets = 5000

// marks tells the bytes that a bracketScanner looks at outside strings. Control characters are among them
// because API servers send none within an event: what has some is pretty-printed, or no JSON.
var marks = func() (table [256]bool) {
	for c := range byte(' ') {
		table[c] = true
	}
	for _, c := range `"{}[]` {
		table[c] = true
	}
	return table
}()

// advance reads text until the object ends, and returns how many bytes that took.
func (s *bracketScanner) advance(text []byte) (int, scanState) {
	for i, c := range text {
		if s.inString {
			switch {
			case c < ' ': // also behind a backslash
				return i, scanUnusual
			case s.escaped:
				s.escaped = false
			case c == '"':
				s.inString = false
			case c == '\\':
				s.escaped = true
			}
			continue
		}
		if !marks[c] {
			continue
		}
		switch c {
		case '"':
			s.inString = true
		case '{', '[':
			if s.depth++; s.depth > maxBrackets {
				return i, scanUnusual
			}
		case '}', ']':
			if s.depth--; s.depth <= 0 {
				return i + 1, scanComplete
			}
		default:
			return i, scanUnusual
		}
	}
	return len(text), scanIncomplete
}
