package naming

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// MaxRegexpInput is the maximum length in bytes of a text to match in an index function.
const MaxRegexpInput = 64 << 10

// maxRegexpSize is the maximum number of steps of a program, and of a match per character.
const maxRegexpSize = 2000

// ErrRegexpTooLarge is returned for an expression with repetitions that make the program too large.
var ErrRegexpTooLarge = errors.New("shorten repetitions such as {1000}")

// CompileRegexp compiles expressions of a bounded size. Errors: [*syntax.Error] or [ErrRegexpTooLarge].
func CompileRegexp(text string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if n := regexpSize(parsed); n > maxRegexpSize {
		return nil, fmt.Errorf("the regular expression has %d steps, at most %d are allowed; %w", n, maxRegexpSize,
			ErrRegexpTooLarge)
	}
	return regexp.Compile(text)
}

// regexpSize estimates the number of steps of an expression.
func regexpSize(e *syntax.Regexp) int {
	n := max(len(e.Rune), 1)
	if e.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range e.Sub {
		n += regexpSize(sub)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min+1, e.Max)
	}
	return n
}
