package cli

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/manifest"
)

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1 // for a comparison: differences were found
	// ExitUsage: the command line, an expression or an index config is invalid, or a comparison failed.
	ExitUsage     = 2
	ExitNotSynced = 3 // a type did not sync in time
	ExitForbidden = 4 // the server denied the request: no permission or no valid identity
	// ExitIncomplete: some clusters could not be read, or some API groups could not be discovered; the rest
	// was printed.
	ExitIncomplete  = 5
	ExitInterrupted = 130 // the shell's code for SIGINT
)

// exitCode returns the exit code for err. For joined errors, the first case that matches one of them counts.
func exitCode(err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, session.ErrInterrupted):
		return ExitInterrupted
	case endedCode(err) > 0:
		return endedCode(err)
	case errors.As(err, new(*session.UsageError)), errors.As(err, new(*indexers.ConfigError)):
		return ExitUsage
	case anyError(err, isIncomplete):
		return ExitIncomplete
	case anyError(err, isDenied):
		return ExitForbidden
	case errors.Is(err, session.ErrNotSynced), anyError(err, isSyncTimeout):
		return ExitNotSynced
	case errors.As(err, new(*session.ComparisonError)):
		return ExitUsage
	default:
		return ExitFailed
	}
}

// endedCode returns the exit code of a background process that printed its error, or 0.
func endedCode(err error) int {
	if ended := (*localserver.EndedError)(nil); errors.As(err, &ended) {
		return ended.Code
	}
	return 0
}

// isMultiline reports whether err itself, not an error it wraps, has a text of several lines.
func isMultiline(err error) bool {
	switch e := err.(type) {
	case *session.UsageError:
		return e.Multiline
	case *indexers.ConfigError:
		return true
	}
	return false
}

// isDenied reports whether err itself is the server's answer 401 or 403.
func isDenied(err error) bool {
	_, ok := err.(apierrors.APIStatus)
	return ok && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err))
}

// isIncomplete reports whether err itself says that the answer can lack clusters or types.
func isIncomplete(err error) bool {
	switch e := err.(type) {
	case *session.IncompleteError, *session.UnknownGroupsError, *session.UncollectedError,
		manifest.PartialError:
		return true
	case *discovery.NoMatchError:
		return len(e.FailedGroupVersions) > 0
	}
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Reason == filesource.ReasonNotCollected
}

// isSyncTimeout reports whether err itself is a sync that timed out.
func isSyncTimeout(err error) bool {
	notSynced, ok := err.(*dynamicinformer.NotSyncedError)
	return ok && errors.Is(notSynced.Cause, context.DeadlineExceeded)
}

// anyError reports whether matches returns true for any error in the tree of err. errors.As would stop at the
// first error of a type.
func anyError(err error, matches func(error) bool) bool {
	var wrapped []error
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		wrapped = []error{x.Unwrap()}
	case interface{ Unwrap() []error }:
		wrapped = x.Unwrap()
	}
	return matches(err) || slices.ContainsFunc(wrapped,
		func(inner error) bool { return inner != nil && anyError(inner, matches) })
}
