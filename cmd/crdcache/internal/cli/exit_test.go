package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

func statusError(code int) error {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "widgets"},
		"", "", 0, false)
}

// notSyncedError returns the error of a wait for sync. cause ended the wait; it is nil if all types were
// settled.
func notSyncedError(cause error, lastErrors ...error) *dynamicinformer.NotSyncedError {
	e := &dynamicinformer.NotSyncedError{Cause: cause}
	for _, err := range lastErrors {
		e.NotSynced = append(e.NotSynced, status.Status{State: status.Degraded, LastError: err})
	}
	return e
}

func TestExitCode(t *testing.T) {
	notInstalled := notSyncedError(context.DeadlineExceeded, nil)
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"success", nil, ExitOK},
		{"anything", errors.New("boom"), ExitFailed},
		{"usage", session.Usagef("no such flag"), ExitUsage},
		{"wrapped usage", fmt.Errorf("dump: %w", session.Usagef("no such flag")), ExitUsage},
		{"not synced in time", notInstalled, ExitNotSynced},
		{"not synced, out of contact", notSyncedError(context.DeadlineExceeded, errors.New("connection refused")),
			ExitNotSynced},
		{"wrapped not synced", fmt.Errorf("dump: %w", notInstalled), ExitNotSynced},
		{"not found", notSyncedError(nil, statusError(http.StatusNotFound)), ExitFailed},
		{"not found, after a request that took too long", errors.Join(
			fmt.Errorf("discovery: %w", context.DeadlineExceeded), notSyncedError(nil,
				statusError(http.StatusNotFound))), ExitFailed},
		{"one settled, one late", errors.Join(notSyncedError(nil, statusError(http.StatusNotFound)), notInstalled), ExitNotSynced},
		{"given up for another reason", notSyncedError(errors.New("enough")), ExitFailed},
		{"a deadline of something else", fmt.Errorf("get: %w", context.DeadlineExceeded), ExitFailed},
		{"forbidden", statusError(http.StatusForbidden), ExitForbidden},
		{"unauthorized", fmt.Errorf("get /apis: %w", statusError(http.StatusUnauthorized)), ExitForbidden},
		{"forbidden type", notSyncedError(nil, statusError(http.StatusForbidden)), ExitForbidden},
		{"forbidden type behind another", notSyncedError(nil, statusError(http.StatusNotFound),
			statusError(http.StatusForbidden)), ExitForbidden},
		{"forbidden and late", errors.Join(notInstalled, statusError(http.StatusForbidden)), ExitForbidden},
		{"forbidden and usage", errors.Join(statusError(http.StatusForbidden), session.Usagef("no")), ExitUsage},
		{"interrupted", session.ErrInterrupted, ExitInterrupted},
		{"interrupted and everything", errors.Join(statusError(http.StatusForbidden), session.Usagef("no"), notInstalled,
			session.ErrInterrupted), ExitInterrupted},
		{"other answer", statusError(http.StatusInternalServerError), ExitFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitCode(tt.err); got != tt.want {
				t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}
