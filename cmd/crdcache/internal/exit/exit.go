// Package exit maps errors to exit codes.
package exit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
)

// Exit codes.
const (
	OK     = 0
	Failed = 1 // for a comparison: differences were found
	// the command line, an expression or an index config is invalid; for a comparison: it failed
	Usage       = 2
	NotSynced   = 3   // a type did not sync in time
	Forbidden   = 4   // the server denied the request: no permission or no valid identity
	Interrupted = 130 // the shell's code for SIGINT
)

// ErrInterrupted ends a command after a signal.
var ErrInterrupted = errors.New("interrupted")

// ErrNotSynced ends a command that timed out before a type was synced.
var ErrNotSynced = errors.New("not synced")

// ErrDifferent is returned by a comparison that found differences. Nothing is printed for it.
var ErrDifferent = errors.New("there are differences")

type comparisonError struct{ error }

func (e *comparisonError) Unwrap() error { return e.error }

// MarkComparison marks an error as the failure of a comparison, because exit code 1 means differences. It
// returns nil for nil.
func MarkComparison(err error) error {
	if err == nil {
		return nil
	}
	return &comparisonError{err}
}

// ReportedError is the failure of another process that printed its error.
type ReportedError struct {
	// Code is the exit code of the process.
	Code int
}

func (e *ReportedError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// IsReported reports whether err needs no message.
func IsReported(err error) bool {
	return errors.Is(err, ErrDifferent) || errors.As(err, new(*ReportedError))
}

// UsageError is an error in the command line.
type UsageError struct {
	text string
	// lines keeps the line breaks of text.
	lines bool
}

// Usagef returns a UsageError with one line of text.
func Usagef(format string, args ...any) error {
	return &UsageError{text: fmt.Sprintf(format, args...)}
}

// UsageLines returns a UsageError that keeps its line breaks, such as an expression with a caret below it.
func UsageLines(text string) error { return &UsageError{text: text, lines: true} }

func (e *UsageError) Error() string { return e.text }

// Code returns the exit code for err. Of several joined errors, the first case that matches one of them wins.
func Code(err error) int {
	var usage *UsageError
	var config *indexers.ConfigError
	var reported *ReportedError
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrInterrupted):
		return Interrupted
	case errors.As(err, &reported):
		return reported.Code
	case errors.As(err, &usage), errors.As(err, &config):
		return Usage
	case anyError(err, isDenied):
		return Forbidden
	case errors.Is(err, ErrNotSynced), anyError(err, timedOut):
		return NotSynced
	case errors.As(err, new(*comparisonError)):
		return Usage
	default:
		return Failed
	}
}

// IsMultiline reports whether err itself, not an error it wraps, has a text of several lines.
func IsMultiline(err error) bool {
	switch e := err.(type) {
	case *UsageError:
		return e.lines
	case *indexers.ConfigError:
		return true
	}
	return false
}

// isDenied reports whether err itself is the server's answer 401 or 403.
func isDenied(err error) bool {
	if _, ok := err.(apierrors.APIStatus); !ok {
		return false
	}
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// timedOut reports whether err itself is a sync that timed out.
func timedOut(err error) bool {
	notSynced, ok := err.(*dynamicinformer.NotSyncedError)
	return ok && errors.Is(notSynced.Cause, context.DeadlineExceeded)
}

// anyError reports whether is holds for any error in the tree of err. errors.As would stop at the first error
// of a type.
func anyError(err error, matches func(error) bool) bool {
	if matches(err) {
		return true
	}
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		if inner := x.Unwrap(); inner != nil {
			return anyError(inner, matches)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range x.Unwrap() {
			if anyError(inner, matches) {
				return true
			}
		}
	}
	return false
}

// SplitJoined returns the errors that errors.Join joined, or err itself. It splits a NotSyncedError into one
// error for each type. Only unsettled types keep the cause.
func SplitJoined(err error) []error {
	if err == nil {
		return nil
	}
	if comparison, ok := err.(*comparisonError); ok {
		return SplitJoined(comparison.error)
	}
	if missing, ok := err.(*dynamicinformer.NotSyncedError); ok && len(missing.NotSynced) > 0 {
		return splitTypes(missing)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	// Other errors that wrap several errors have a text of their own.
	if !ok || len(joined.Unwrap()) == 0 || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, SplitJoined(e)...)
	}
	return errs
}

func splitTypes(err *dynamicinformer.NotSyncedError) []error {
	errs := make([]error, 0, len(err.NotSynced))
	for _, current := range err.NotSynced {
		typeErr := &dynamicinformer.NotSyncedError{NotSynced: []status.Status{current}}
		if !current.Settled() {
			typeErr.Cause = err.Cause
		}
		errs = append(errs, typeErr)
	}
	return errs
}
