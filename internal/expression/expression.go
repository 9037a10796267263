// Package expression connects index configs and queries with the compiler of CEL expressions. The compiler is
// in module cel, because of its dependencies.
package expression

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// Expression is a compiled expression over an object, self. It is immutable and safe for concurrent use.
type Expression interface {
	// Eval evaluates the expression. The result is nil, a string, bool, int64 or float64, or a list of them.
	// Eval returns ErrMissing if the object lacks a field that the expression reads, an [*UnusableError] for
	// another result, and the error of the context or of the evaluation, such as that it costs too much.
	Eval(ctx context.Context, object map[string]any) (any, error)
	// Result is the type of the results, as far as it is known without a schema.
	Result() Kind
	// Reads returns the paths that the expression reads, and everything below them.
	Reads() []jsonpath.Read
	// String returns the text of the expression.
	String() string
}

// Kind is the kind of the results of an expression.
type Kind uint8

// The kinds of results. An expression of kind Any can have all results.
const (
	Any Kind = iota
	Bool
	Scalar
	List
)

// Problem is an error in an expression, at a range of bytes.
type Problem struct {
	Offset, End   int
	Message, Hint string
}

// Error contains the problems of an expression that does not compile.
type Error struct {
	Text     string
	Problems []Problem
}

// Error implements error.
func (e *Error) Error() string {
	p := e.Problems[0]
	return fmt.Sprintf("at %d: %s; %s", p.Offset+1, p.Message, p.Hint)
}

// Errors of [Expression.Eval] and [Compile].
var (
	ErrMissing = errors.New("the object lacks a field that the expression reads")
	// ErrNoCompiler is returned by a program without module cel.
	ErrNoCompiler = errors.New("this program has no support for CEL")
)

// UnusableError is returned for a result that is neither a scalar nor a list of scalars.
type UnusableError struct{ Type string }

// Error implements error.
func (e *UnusableError) Error() string {
	return "the result has the type " + e.Type + "; write an expression of a string, number or boolean, or a list of them"
}

const NoCompilerRemedy = "use crdcache of a release, import github.com/crdcache/crdcache/adapters/cel in your program, or write a path"

// MaxLength is the maximum length of an expression in bytes.
const MaxLength = 16 << 10

var compiler atomic.Pointer[func(string) (Expression, error)]

// SetCompiler sets the compiler of expressions. Module cel calls it when a program is initialized.
func SetCompiler(compile func(text string) (Expression, error)) { compiler.Store(&compile) }

// Compile compiles an expression. The error is an [*Error] or [ErrNoCompiler].
func Compile(text string) (Expression, error) {
	compile := compiler.Load()
	switch {
	case compile == nil:
		return nil, ErrNoCompiler
	case len(text) > MaxLength:
		return nil, &Error{text, []Problem{{0, len(text), "the expression is longer than 16 KiB", "write a shorter one"}}}
	}
	return (*compile)(text)
}
