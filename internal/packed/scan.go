package packed

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"sync"
)

// maxDepth is the depth from which on objects are left to the stock decoder, which refuses them at 10,000 and
// counts an event or a list around them, too.
const maxDepth = 5000

// stop is why a scan ended early.
type stop uint8

const (
	stopNever   stop = iota
	stopEnd          // the data ends too early
	stopSyntax       // the data is not JSON
	stopUnusual      // the data may be right, but is for the stock decoder
)

// scanner checks the syntax of JSON. Its methods take the offset of what they read and return the offset after it, or -1
// after having set stopped.
type scanner struct {
	data    []byte
	stopped stop
	cuts    []span // what to leave out of data, in order and apart from each other
	found   identityOf
}

// maxCuts is how many cuts a scanner keeps room for between scans.
const maxCuts = 1 << 10

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func (s *scanner) release() {
	if cap(s.cuts) > maxCuts {
		return
	}
	*s = scanner{cuts: s.cuts[:0]}
	scanners.Put(s)
}

// span is a part of data.
type span struct{ start, end int }

func (s *scanner) fail(at int) int {
	if s.stopped == stopNever {
		s.stopped = stopSyntax
		if at >= len(s.data) {
			s.stopped = stopEnd
		}
	}
	return -1
}

func (s *scanner) unusual() int {
	if s.stopped == stopNever {
		s.stopped = stopUnusual
	}
	return -1
}

// space returns the offset of the first byte from i on that is not white space.
func space(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// bitsOfDepth is how many levels of nesting one call of skip keeps track of.
const bitsOfDepth = 64

// skip reads the value at i. depth is that of what is around it.
func (s *scanner) skip(i, depth int) int {
	data := s.data
	var objects uint64 // the open brackets from the innermost on; a set bit is a brace
	open := 0
value:
	if i >= len(data) {
		return s.fail(i)
	}
	switch c := data[i]; c {
	case '"':
		if i = s.text(i + 1); i < 0 {
			return -1
		}
	case '{', '[':
		if open == bitsOfDepth {
			if i = s.skip(i, depth+open); i < 0 {
				return -1
			}
			break
		}
		if depth+open >= maxDepth {
			return s.unusual()
		}
		if i++; i < len(data) && data[i] <= ' ' {
			i = space(data, i)
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
		i = s.word(i, "true")
	case 'f':
		i = s.word(i, "false")
	case 'n':
		i = s.word(i, "null")
	default:
		i = s.number(i)
	}
	if i < 0 {
		return -1
	}
after:
	if open == 0 {
		return i
	}
	if i >= len(data) || data[i] <= ' ' {
		if i = space(data, i); i >= len(data) {
			return s.fail(i)
		}
	}
	switch c := data[i]; {
	case c == ',':
		if i++; i < len(data) && data[i] <= ' ' {
			i = space(data, i)
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
		return s.fail(i)
	}
key:
	if i >= len(data) || data[i] != '"' {
		return s.fail(i)
	}
	if i = s.text(i + 1); i < 0 {
		return -1
	}
	if i+1 < len(data) && data[i] == ':' && data[i+1] > ' ' {
		i++
	} else if i = s.colon(i); i < 0 {
		return -1
	}
	goto value
}

// colon reads a colon with the white space around it.
func (s *scanner) colon(i int) int {
	data := s.data
	if i < len(data) && data[i] <= ' ' {
		i = space(data, i)
	}
	if i >= len(data) || data[i] != ':' {
		return s.fail(i)
	}
	if i++; i < len(data) && data[i] <= ' ' {
		i = space(data, i)
	}
	return i
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// special marks, with the top bit of a byte, which of eight bytes end or interrupt a string: quotes, backslashes and
// control characters. The lowest mark is right; what a borrow does to the marks above it does not matter.
func special(w uint64) uint64 {
	quote, slash := w^everyByte*'"', w^everyByte*'\\'
	return ((w-everyByte*' ')&^w | (quote-everyByte)&^quote | (slash-everyByte)&^slash) & highBits
}

// text reads a string from the byte after its opening quote on, and its closing quote.
func (s *scanner) text(i int) int {
	data := s.data
	for {
		for i+8 <= len(data) {
			if marks := special(binary.LittleEndian.Uint64(data[i:])); marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' {
			i++
		}
		if i >= len(data) {
			return s.fail(i)
		}
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			if i = s.escape(i); i < 0 {
				return -1
			}
		default:
			return s.fail(i)
		}
	}
}

// escape reads the escape at i.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.data) {
		return s.fail(i + 1)
	}
	if s.data[i+1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, s.data[i+1]) < 0 {
			return s.fail(i + 1)
		}
		return i + 2
	}
	for k := i + 2; k < i+6; k++ {
		if k >= len(s.data) || !isHex(s.data[k]) {
			return s.fail(k)
		}
	}
	return i + 6
}

func isHex(c byte) bool { return c-'0' <= 9 || (c|0x20)-'a' <= 5 }

func (s *scanner) word(i int, word string) int {
	for k := range len(word) {
		if i+k >= len(s.data) || s.data[i+k] != word[k] {
			return s.fail(i + k)
		}
	}
	return i + len(word)
}

// number reads the number at i, or fails because there is no value.
func (s *scanner) number(i int) int {
	data, start := s.data, i
	if i < len(data) && data[i] == '-' {
		i++
	}
	first := i
	if i = digits(data, i); i == first {
		return s.fail(i)
	}
	if data[first] == '0' && i > first+1 {
		return s.fail(first + 1)
	}
	if i < len(data) && data[i] == '.' {
		first = i + 1
		if i = digits(data, first); i == first {
			return s.fail(i)
		}
	}
	exponent := false
	if i < len(data) && data[i]|0x20 == 'e' {
		exponent = true
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		first = i
		if i = digits(data, first); i == first {
			return s.fail(i)
		}
	}
	// Only an exponent or hundreds of digits can exceed what a float64 holds.
	if exponent || i-start > 300 {
		if _, err := strconv.ParseFloat(string(data[start:i]), 64); err != nil {
			return s.fail(start)
		}
	}
	return i
}

func digits(data []byte, i int) int {
	for i < len(data) && data[i]-'0' <= 9 {
		i++
	}
	return i
}
