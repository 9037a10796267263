package dynamicinformer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/naming"
)

// WaitForSync waits until each of the types is settled (see Status.Settled), or ctx ends. Without types it
// waits for all types that were requested before the call. It waits for every informer of a type;
// Informer.WaitForSync and Handle.WaitForSync wait for one. It does not poll.
//
// A required type (see ResourceOptions.Required) is settled only when it is synced or stopped, because it may
// be installed, or the permission to read it granted, while the program starts. A type that does not support
// list, or has another scope, is settled as well.
//
// WaitForSync returns nil if all types are synced, and otherwise a *NotSyncedError with the status of each
// type that is not. These include types that were not requested, and without arguments the types that only
// Options.Resources requires. A type that cannot sync does not end the wait for the others.
func (f *Factory) WaitForSync(ctx context.Context, gvrs ...schema.GroupVersionResource) error {
	failure := &NotSyncedError{}
	entries := f.entries(gvrs...)
	for _, e := range entries {
		current, err := e.informer.waitUntilSettled(ctx, e.informer.health.Required)
		if err != nil {
			failure.Cause = err
		}
		if current.State != status.Synced {
			failure.NotSynced = append(failure.NotSynced, current)
		}
	}
	failure.NotSynced = append(failure.NotSynced, f.withoutInformer(gvrs, entries)...)
	if len(failure.NotSynced) > 0 {
		return failure
	}
	return nil
}

// WaitForSync waits until the informer is settled, as Factory.WaitForSync does, independently of other
// informers. It returns nil if the informer is synced, and otherwise a *NotSyncedError, which wraps
// ErrStopped if the informer has stopped. Synced and HasSyncedChecker stay open, as in client-go.
func (i *Informer) WaitForSync(ctx context.Context) error {
	return i.waitForSync(ctx, i.health.Required)
}

// WaitForSync works like Informer.WaitForSync, except that this handle's options decide whether the type is
// required. After Release it ends when the informer stops.
func (h *Handle) WaitForSync(ctx context.Context) error {
	return h.Informer().waitForSync(ctx, func() bool { return h.required })
}

// Synced returns a channel that is closed when HasSynced is true. Once the type has been deleted, Synced
// returns another channel. Unlike HasSyncedChecker it does not need client-go 0.36.
func (i *Informer) Synced() <-chan struct{} { return i.core.Synced() }

func (i *Informer) waitForSync(ctx context.Context, required func() bool) error {
	current, err := i.waitUntilSettled(ctx, required)
	if current.State == status.Synced {
		return nil
	}
	return &NotSyncedError{NotSynced: []status.Status{current}, Cause: err}
}

// waitUntilSettled returns the status once it is settled, or the current status and the cause of ctx.
func (i *Informer) waitUntilSettled(ctx context.Context, required func() bool) (status.Status, error) {
	for {
		current, changed := i.StatusChange()
		if current.Settled() && !(required() && mayRecover(current)) {
			return current, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return current, context.Cause(ctx)
		}
	}
}

// mayRecover reports whether an informer that is not synced may sync later without a change of the program:
// after an installation of its type, or after a grant of the permission to read it.
func mayRecover(s status.Status) bool {
	switch s.State {
	case status.Pending, status.Syncing, status.Resuming, status.Degraded:
		return s.Reason.Absent() || s.Reason == status.ReasonForbidden ||
			s.Reason == status.ReasonUnauthorized
	}
	return false
}

// withoutInformer returns a status for each type, or without types each required one, that was not requested.
func (f *Factory) withoutInformer(gvrs []schema.GroupVersionResource, requested []*entry) []status.Status {
	message := "ForResource was not called for it"
	if len(gvrs) == 0 {
		gvrs, message = f.options.requiredTypes(), health.RequiredWithoutInformer
	}
	var missing []status.Status
	for _, gvr := range gvrs {
		if !slices.ContainsFunc(requested, func(e *entry) bool { return e.key.gvr == gvr }) {
			missing = append(missing, status.Status{GVR: gvr, State: status.Pending, Message: message})
		}
	}
	return missing
}

// NotSyncedError lists the types that are not synced, with their states.
type NotSyncedError struct {
	// NotSynced are the statuses of the types that are not synced.
	NotSynced []status.Status
	// Cause is the cause of the context if it ended before all types were settled; otherwise nil.
	Cause error
}

// Error returns each type with its state and reason, in one line.
func (e *NotSyncedError) Error() string {
	parts := naming.Texts(e.NotSynced,
		func(s status.Status) string { return formatGVR(s.GVR) + ": " + s.Describe() })
	text := "not synced: " + strings.Join(parts, "; ")
	if e.Cause != nil {
		text += fmt.Sprintf(" (gave up: %v)", e.Cause)
	}
	return text
}

// Unwrap returns the last error of each type, ErrStopped for each stopped informer, and Cause.
func (e *NotSyncedError) Unwrap() []error {
	var errs []error
	for _, s := range e.NotSynced {
		if s.LastError != nil {
			errs = append(errs, s.LastError)
		}
		if s.State == status.Stopped {
			errs = append(errs, ErrStopped)
		}
	}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	return errs
}

func formatGVR(gvr schema.GroupVersionResource) string { return naming.FormatType(gvr) }
