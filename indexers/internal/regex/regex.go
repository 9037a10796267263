// Package regex compiles regular expressions of users with a bound on the work of a match.
package regex

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// MaxInput is the maximum length of a text in bytes that an index function matches.
const MaxInput = 64 << 10

// maxSize is the maximum number of steps of a program. A match takes at most this number of steps per
// character.
const maxSize = 2000

// TooLargeError is returned for an expression whose repetitions make the program too large.
type TooLargeError struct {
	// Size is the number of steps.
	Size int
}

// Error returns the size, the limit and the remedy.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf(
		"the regular expression has %d steps, at most %d are allowed; shorten repetitions such as {1000}",
		e.Size, maxSize)
}

// Compile is [regexp.Compile] for expressions of a bounded size. The error is a [*syntax.Error] or a
// [*TooLargeError].
func Compile(text string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if n := size(parsed); n > maxSize {
		return nil, &TooLargeError{n}
	}
	return regexp.Compile(text)
}

// size estimates the number of steps of an expression.
func size(e *syntax.Regexp) int {
	n := max(len(e.Rune), 1)
	if e.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range e.Sub {
		n += size(sub)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min+1, e.Max)
	}
	return n
}
