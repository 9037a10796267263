package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
)

// ErrNotSynced ends a command that timed out before a type was synced.
var ErrNotSynced = errors.New("not synced")

// UnknownGroupsError says that an answer can lack types, because their groups could not be discovered.
type UnknownGroupsError struct {
	// Name is the type name of the command. It is empty for all types.
	Name string
	// Groups are the group versions that could not be discovered.
	Groups []discovery.GroupFailure
}

func (e *UnknownGroupsError) Error() string {
	texts := naming.Texts(e.Groups, discovery.GroupFailure.String)
	subject := "the answer"
	if e.Name != "" {
		subject += " for " + e.Name
	}
	return fmt.Sprintf("%s is incomplete: the types of these groups are unknown: %s", subject,
		strings.Join(texts, "; "))
}

// UncollectedError says that an answer can lack objects that the tool which made the files could not read.
type UncollectedError struct{ Reason string }

func (e *UncollectedError) Error() string { return "the answer is incomplete: " + e.Reason }

// IsToldBy reports whether an error of a refused read has the same reason.
func (e *UncollectedError) IsToldBy(errs []error) bool {
	return slices.ContainsFunc(errs, func(other error) bool {
		_, isOther := other.(*UncollectedError)
		return !isOther && strings.Contains(other.Error(), e.Reason)
	})
}

// IncompleteError says that the printed answer lacks clusters, or types that a side of a comparison lacks.
type IncompleteError struct{ text string }

func Incompletef(format string, args ...any) error {
	return &IncompleteError{fmt.Sprintf(format, args...)}
}

func (e *IncompleteError) Error() string { return e.text }

// UsageError is an error in the command line.
type UsageError struct {
	text string
	// Multiline is set if the text has line breaks, such as an expression with a caret below it.
	Multiline bool
}

// Usagef returns a UsageError with one line of text.
func Usagef(format string, args ...any) error { return &UsageError{text: fmt.Sprintf(format, args...)} }

// UsageLines returns a UsageError that keeps its line breaks.
func UsageLines(text string) error { return &UsageError{text: text, Multiline: true} }

func (e *UsageError) Error() string { return e.text }

// SplitJoined returns the errors that errors.Join joined, or err itself. It splits a NotSyncedError into one
// error for each type. Errors of settled types do not have the cause that ended the wait.
func SplitJoined(err error) []error {
	if err == nil {
		return nil
	}
	if missing, ok := err.(*dynamicinformer.NotSyncedError); ok && len(missing.NotSynced) > 0 {
		return naming.Map(missing.NotSynced, func(current status.Status) error {
			typeErr := &dynamicinformer.NotSyncedError{NotSynced: []status.Status{current}}
			if !current.Settled() {
				typeErr.Cause = missing.Cause
			}
			return typeErr
		})
	}
	joined, ok := err.(interface{ Unwrap() []error })
	// Other errors that wrap several errors have a text of their own.
	if !ok || len(joined.Unwrap()) == 0 || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	return slices.Concat(naming.Map(joined.Unwrap(), SplitJoined)...)
}

// JoinDistinct joins errors, and omits repeated texts.
func JoinDistinct(errs ...error) error {
	var distinct []error
	for _, e := range SplitJoined(errors.Join(errs...)) {
		if !slices.ContainsFunc(distinct, func(earlier error) bool { return earlier.Error() == e.Error() }) {
			distinct = append(distinct, e)
		}
	}
	return errors.Join(distinct...)
}
