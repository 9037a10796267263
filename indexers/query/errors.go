package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// ErrContinue is returned for an invalid continue token or one of another query.
var ErrContinue = errors.New("the continue token does not belong to this query")

// ErrNoReferences is returned for a query about references by a Querier without [Querier.WithReferences].
var ErrNoReferences = errors.New("the querier has no references; call Querier.WithReferences with references.Graph.ForType")

// UnknownReferenceError is returned if the objects have no reference with a name.
type UnknownReferenceError struct {
	// Name is the requested name.
	Name string
	// Known are the existing names, sorted.
	Known []string
}

// Error implements error.
func (e *UnknownReferenceError) Error() string {
	return fmt.Sprintf("there is no reference %q; there are %s", e.Name, strings.Join(e.Known, ", "))
}

// UnknownIndexError is returned if the source has no index with a name.
type UnknownIndexError struct {
	// Name is the requested name.
	Name string
	// Known are the existing names, sorted.
	Known []string
}

// Error implements error.
func (e *UnknownIndexError) Error() string {
	switch len(e.Known) {
	case 0:
		return fmt.Sprintf("there is no index %q, nor any other", e.Name)
	case 1:
		return fmt.Sprintf("there is no index %q; the only one is %s", e.Name, e.Known[0])
	}
	return fmt.Sprintf("there is no index %q; there are %s", e.Name, strings.Join(e.Known, ", "))
}

// UnsortedError is returned if a query needs the order of an index that is not sorted.
type UnsortedError struct {
	// Index is the name of the index.
	Index string
	// For is the operation that needs the order.
	For string
}

// Error implements error.
func (e *UnsortedError) Error() string {
	return fmt.Sprintf("index %q is not sorted, which %s needs; add order: Sorted to it", e.Index, e.For)
}

// SortError is returned for an invalid Options.SortBy.
type SortError struct {
	// Text is the invalid term.
	Text string
	// Err is the *jsonpath.Error of a path; nil for other terms.
	Err error
}

// Error implements error.
func (e *SortError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("cannot sort by %q: %v", e.Text, e.Err)
	}
	return fmt.Sprintf("cannot sort by %q; write a sorted index, a path, name, namespace or age, then asc or desc, "+
		"and several with commas, as in \"expiry desc, name\"", e.Text)
}

// Unwrap returns Err.
func (e *SortError) Unwrap() error { return e.Err }

// ScanError is returned for a query that has to scan all objects without Options.AllowScan.
type ScanError struct {
	// Query is the query in the text syntax.
	Query string
	// Objects is the number of objects.
	Objects int
}

// Error implements error.
func (e *ScanError) Error() string {
	return fmt.Sprintf("%s needs a scan of all %d objects; combine it with a condition on an index, or allow "+
		"a full scan", e.Query, e.Objects)
}

// DroppedFieldError is returned for a query that reads a field that the cache does not store.
type DroppedFieldError struct {
	// Field is the field, in the syntax of dynamicinformer.Informer.Drops.
	Field string
	// Index is the name of the index that reads the field; empty for conditions, orders, groups and measures.
	Index string

	read jsonpath.Read
}

// Error implements error.
func (e *DroppedFieldError) Error() string {
	reader := ""
	if e.Index != "" {
		reader = fmt.Sprintf("index %q reads ", e.Index)
	}
	return fmt.Sprintf("%s%s, which the cache does not store: add the field to keep, remove it from prune, or "+
		"choose a storage mode that stores more than metadata", reader, e.Field)
}

// celError adds the CEL expression and the object to an error.
func celError(object string, e expression.Expression, err error) error {
	if errors.Is(err, expression.ErrMissing) {
		return fmt.Errorf("%s fails on %s: %w; test the field by has(self.a.b), or write self.a.?b.orValue(…)", e,
			object, err)
	}
	return fmt.Errorf("%s fails on %s: %w", e, object, err)
}

// checkStored returns a DroppedFieldError if an expression reads a field that the items lack.
func checkStored(s Snapshot, expr interface{ Reads() []jsonpath.Read }) error {
	if !s.Drops("..") {
		return nil
	}
	for _, read := range expr.Reads() {
		for _, field := range read.Fields() {
			if s.Drops(field) {
				return &DroppedFieldError{Field: field, read: read}
			}
		}
	}
	return nil
}

// checkLabels returns the error of a selector, or an error if the items lack a label of it.
func (c *compiler) checkLabels(query *labelQuery) error {
	if query.err != nil || !c.snapshot.Drops(".metadata.labels..") {
		return query.err
	}
	requirements, _ := query.selector.Requirements()
	return naming.Each(requirements, func(r labels.Requirement) error {
		return checkStored(c.snapshot, jsonpath.FromSegments("metadata", "labels", r.Key()))
	})
}

// Error is an error in a query's text, with its position.
type Error struct {
	// Text is the whole query. Offset and Length are the affected bytes of it.
	Text           string
	Offset, Length int
	// Err is the cause.
	Err error
}

// Error returns the column, in characters from 1, and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("query:%d: %v", utf8.RuneCountInString(e.Text[:e.Offset])+1, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Caret returns the line of the query and a mark below the position, without a final newline.
func (e *Error) Caret() string {
	return jsonpath.Diagnostic{Expr: e.Text, Offset: e.Offset, Length: e.Length}.Caret()
}

// within returns a range of bytes of the text that was parsed from the literal at m.
func (t textRange) within(start, end int) textRange {
	literal := t.text[t.start:t.end]
	return textRange{t.text, t.start + offsetInLiteral(literal, start),
		t.start + offsetInLiteral(literal, end)}
}

// locate adds the position to an error. It returns err unchanged if the query was not text.
func (t textRange) locate(err error) error {
	if err == nil || t.text == "" {
		return err
	}
	return &Error{Text: t.text, Offset: t.start, Length: t.end - t.start, Err: err}
}
