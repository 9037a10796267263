package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrContinue is returned for a continue token that belongs to another query, or to none.
var ErrContinue = errors.New("the continue token does not belong to this query")

// ErrNoReferences is returned for a query about references where nobody follows them.
var ErrNoReferences = errors.New("there are no references to ask for; give the querier those of a references.Graph by WithReferences")

// UnknownReferenceError says that the objects make no reference of a name.
type UnknownReferenceError struct {
	// Name was asked for.
	Name string
	// Known are the names there are, sorted.
	Known []string
}

// Error lists the references there are.
func (e *UnknownReferenceError) Error() string {
	return fmt.Sprintf("there is no reference %q; there are %s", e.Name, strings.Join(e.Known, ", "))
}

// UnknownIndexError says that there is no index of a name.
type UnknownIndexError struct {
	// Name was asked for.
	Name string
	// Known are the names there are, sorted.
	Known []string
}

// Error lists the indexes there are.
func (e *UnknownIndexError) Error() string {
	switch len(e.Known) {
	case 0:
		return fmt.Sprintf("there is no index %q, nor any other", e.Name)
	case 1:
		return fmt.Sprintf("there is no index %q; the only one is %s", e.Name, e.Known[0])
	}
	return fmt.Sprintf("there is no index %q; there are %s", e.Name, strings.Join(e.Known, ", "))
}

// UnsortedError says that an index has no order, which the query needs.
type UnsortedError struct {
	// Index is its name.
	Index string
	// For is what the order is needed for.
	For string
}

// Error says what to do.
func (e *UnsortedError) Error() string {
	return fmt.Sprintf("index %q has no order, which %s needs; add order: sorted to it", e.Index, e.For)
}

// SortError says that what to sort by cannot be read.
type SortError struct {
	// Text is the part that is wrong.
	Text string
	// Err is what is wrong with a path, a *jsonpath.Error; nil for anything else.
	Err error
}

// Error says what to write.
func (e *SortError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("cannot sort by %q: %v", e.Text, e.Err)
	}
	return fmt.Sprintf("cannot sort by %q; write a sorted index, a path, name, namespace or age, then asc or desc, and several with commas, as in \"expiry desc, name\"", e.Text)
}

// Unwrap gives what is wrong with a path.
func (e *SortError) Unwrap() error { return e.Err }

// ScanError says that a query has to look at every object, which was not allowed.
type ScanError struct {
	// Query is what no index answers.
	Query string
	// Objects is how many there are.
	Objects int
}

// Error says what to do.
func (e *ScanError) Error() string {
	return fmt.Sprintf("%s has to look at all %d objects; combine it with a condition on an index, or allow a full scan",
		e.Query, e.Objects)
}

// Error is what is wrong with a query that was written as text, and where.
type Error struct {
	// Text is the whole query; Offset and Length say which bytes of it are concerned.
	Text           string
	Offset, Length int
	// Err says what is wrong.
	Err error
}

// Error gives the column, in characters from 1, and what is wrong there.
func (e *Error) Error() string {
	return fmt.Sprintf("query:%d: %v", utf8.RuneCountInString(e.Text[:e.Offset])+1, e.Err)
}

// Unwrap gives what is wrong without the place.
func (e *Error) Unwrap() error { return e.Err }

// Caret gives the query and, on a second line, a mark below the place.
func (e *Error) Caret() string {
	var b strings.Builder
	b.WriteString(e.Text + "\n")
	for _, r := range e.Text[:e.Offset] {
		if r == '\t' || r == '\n' {
			b.WriteRune(r)
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteString("^" + strings.Repeat("~",
		max(utf8.RuneCountInString(e.Text[e.Offset:e.Offset+e.Length])-1, 0)))
	return b.String()
}

// locate adds the place to an error about a part of a query that was text.
func (m mark) locate(err error) error {
	if err == nil || m.text == "" {
		return err
	}
	return &Error{Text: m.text, Offset: m.start, Length: m.end - m.start, Err: err}
}
