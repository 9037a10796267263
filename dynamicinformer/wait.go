package dynamicinformer

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WaitForSync waits until each of the types is settled (see Status.Settled), or ctx ends. Without types
// it waits for all that have been asked for up to this call. The statuses come in the order of gvrs, or
// ordered by group, resource and version, one for each view of a type; each is of the moment when the type was settled.
//
// A type that is required (see ResourceOptions.Required) is not settled by being absent: it is waited for
// until its CRD is there, or ctx ends.
//
// The error is nil when all are synced, and a *NotSyncedError otherwise; a type that was never asked for
// counts as not synced. A type that settles without being synced, because it may not be read for example,
// does not keep the others from being waited for. It does not poll.
func (f *Factory) WaitForSync(ctx context.Context, gvrs ...schema.GroupVersionResource) ([]Status, error) {
	var statuses, missing []Status
	var ended error
	for _, i := range f.named(gvrs) {
		status := i.unknown
		if i.informer != nil {
			var err error
			if status, err = i.informer.waitUntilSettled(ctx); err != nil {
				ended = err
			}
		}
		statuses = append(statuses, status)
		if status.State != StateSynced {
			missing = append(missing, status)
		}
	}
	if len(missing) > 0 {
		return statuses, &NotSyncedError{Missing: missing, Cause: ended}
	}
	return statuses, nil
}

// waitUntilSettled returns the status once it is settled, or the present one and the context's cause.
func (i *Informer) waitUntilSettled(ctx context.Context) (Status, error) {
	for {
		status, changed := i.health.snapshot()
		if status.Settled() && !(i.options.required() && status.absent()) {
			return status, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status, context.Cause(ctx)
		}
	}
}

// absent reports whether the informer has nothing to follow.
func (s Status) absent() bool {
	return (s.State == StatePending || s.State == StateDegraded) && s.Reason.absent()
}

// wanted is one type to wait for; without an informer it was never asked for.
type wanted struct {
	informer *Informer
	unknown  Status
}

// named looks up the informers of gvrs, or of all types when there are none.
func (f *Factory) named(gvrs []schema.GroupVersionResource) []wanted {
	var all []wanted
	if len(gvrs) == 0 {
		for _, e := range f.entries() {
			all = append(all, wanted{informer: e.informer})
		}
		return all
	}
	for _, gvr := range gvrs {
		views := f.entriesOf(gvr)
		for _, e := range views {
			all = append(all, wanted{informer: e.informer})
		}
		if len(views) == 0 {
			all = append(all, wanted{unknown: Status{GVR: gvr, State: StatePending, Message: "ForResource was not called for it"}})
		}
	}
	return all
}

// NotSyncedError reports which types are not synced, and why.
type NotSyncedError struct {
	// Missing are the types that are not synced.
	Missing []Status
	// Cause is why the waiting ended before all types were settled: the context's cause. It is nil when
	// all are settled.
	Cause error
}

// Error names each type with its state and the reason, in one line.
func (e *NotSyncedError) Error() string {
	parts := make([]string, 0, len(e.Missing))
	for _, s := range e.Missing {
		parts = append(parts, formatGVR(s.GVR)+": "+s.describe())
	}
	text := "not synced: " + strings.Join(parts, "; ")
	if e.Cause != nil {
		text += fmt.Sprintf(" (gave up: %v)", e.Cause)
	}
	return text
}

// Unwrap returns the last error of each type, and why the waiting ended.
func (e *NotSyncedError) Unwrap() []error {
	var all []error
	for _, s := range e.Missing {
		if s.LastError != nil {
			all = append(all, s.LastError)
		}
	}
	if e.Cause != nil {
		all = append(all, e.Cause)
	}
	return all
}

// describe is the state, and the reason and message if there are any.
func (s Status) describe() string {
	text := string(s.State)
	if s.Reason != ReasonNone {
		text += fmt.Sprintf(" (%s)", s.Reason)
	}
	if s.Message != "" {
		text += ": " + s.Message
	}
	return text
}

// formatGVR writes a type as people type it: resource.version.group, without what is empty.
func formatGVR(gvr schema.GroupVersionResource) string {
	name := gvr.Resource
	for _, part := range []string{gvr.Version, gvr.Group} {
		if part != "" {
			name += "." + part
		}
	}
	return name
}

func formatGVRs(gvrs []schema.GroupVersionResource) string {
	names := make([]string, 0, len(gvrs))
	for _, gvr := range gvrs {
		names = append(names, formatGVR(gvr))
	}
	return strings.Join(names, ", ")
}
