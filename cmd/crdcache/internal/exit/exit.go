// Package exit decides the exit code of the program, in one place.
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

// The exit codes.
const (
	OK     = 0
	Failed = 1 // of a comparison: there are differences
	// the command line, an expression or an index config is wrong; of a comparison: it failed
	Usage       = 2
	NotSynced   = 3   // a type did not sync in time
	Forbidden   = 4   // the server refused, for lack of rights or of an identity
	Interrupted = 130 // the shell's code for SIGINT
)

// ErrInterrupted is the error of a command that a signal ended.
var ErrInterrupted = errors.New("interrupted")

// ErrNotSynced is the error of a command whose time was up before there was anything to sync.
var ErrNotSynced = errors.New("not synced")

// ErrDifferent is what a comparison came to that found differences. It is no failure, of which nothing is to
// be said.
var ErrDifferent = errors.New("there are differences")

// troubleError is the failure of a comparison.
type troubleError struct{ error }

// Unwrap returns what went wrong.
func (e *troubleError) Unwrap() error { return e.error }

// Trouble marks the failure of a comparison, whose exit code must not be that of differences; nil stays nil.
func Trouble(err error) error {
	if err == nil {
		return nil
	}
	return &troubleError{err}
}

// ReportedError is the failure of another process, which has said what went wrong.
type ReportedError struct {
	// Code is its exit code.
	Code int
}

// Error implements error.
func (e *ReportedError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Reported reports whether nothing is left to be said of an error.
func Reported(err error) bool {
	return errors.Is(err, ErrDifferent) || errors.As(err, new(*ReportedError))
}

// UsageError says that the command line is wrong.
type UsageError struct {
	text string
	// lines: the text has several lines that belong below each other.
	lines bool
}

// Usagef makes a UsageError, whose text will be shown on one line.
func Usagef(format string, args ...any) error {
	return &UsageError{text: fmt.Sprintf(format, args...)}
}

// UsageLines makes a UsageError whose lines are shown as they are, as for an expression with a mark below the
// wrong place.
func UsageLines(text string) error { return &UsageError{text: text, lines: true} }

// Error says what is wrong and what to do.
func (e *UsageError) Error() string { return e.text }

// Code returns the exit code for err; where several errors are joined the gravest decides, in the order
// of the cases.
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
	case anyError(err, refused):
		return Forbidden
	case errors.Is(err, ErrNotSynced), anyError(err, late):
		return NotSynced
	case errors.As(err, new(*troubleError)):
		return Usage
	default:
		return Failed
	}
}

// Lines reports whether the text of err itself, not of what it wraps, has lines that are to be shown as they
// are.
func Lines(err error) bool {
	switch e := err.(type) {
	case *UsageError:
		return e.lines
	case *indexers.ConfigError:
		return true
	}
	return false
}

// refused reports whether err itself, not what it wraps, is the server's answer 401 or 403.
func refused(err error) bool {
	if _, ok := err.(apierrors.APIStatus); !ok {
		return false
	}
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// late reports whether err itself says that the time for syncing was up.
func late(err error) bool {
	notSynced, ok := err.(*dynamicinformer.NotSyncedError)
	return ok && errors.Is(notSynced.Cause, context.DeadlineExceeded)
}

// anyError reports whether is holds for err or anything in its tree. errors.As stops at the first error
// of a type; here another one of the same type may be the one that matters.
func anyError(err error, is func(error) bool) bool {
	if is(err) {
		return true
	}
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		if inner := x.Unwrap(); inner != nil {
			return anyError(inner, is)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range x.Unwrap() {
			if anyError(inner, is) {
				return true
			}
		}
	}
	return false
}

// Split returns the errors that errors.Join has put together in err, err itself if there are none, and
// nothing for nil. A NotSyncedError becomes one for each type, of which only those that were still waited
// for tell why the waiting ended.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	if trouble, ok := err.(*troubleError); ok {
		return Split(trouble.error)
	}
	if missing, ok := err.(*dynamicinformer.NotSyncedError); ok && len(missing.Missing) > 0 {
		return splitTypes(missing)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	// Other errors wrap several ones too, and say more than those do.
	if !ok || len(joined.Unwrap()) == 0 || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Split(e)...)
	}
	return all
}

func splitTypes(err *dynamicinformer.NotSyncedError) []error {
	all := make([]error, 0, len(err.Missing))
	for _, current := range err.Missing {
		one := &dynamicinformer.NotSyncedError{Missing: []status.Status{current}}
		if !current.Settled() {
			one.Cause = err.Cause
		}
		all = append(all, one)
	}
	return all
}
