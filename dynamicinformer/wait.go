package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

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

// WaitForVersion waits until the cache has every change up to a resource version, so that it shows the write
// that returned the version. It returns nil when a list, an event or a bookmark has reached the version
// (TestWaitForVersion). If each namespace or each part of a shard has its own watch, all of them must reach
// it. Resource versions are compared as numbers, which is valid within a type.
//
// The version may be of an object that the informer does not select, in another namespace or shard: no event
// follows then. After 250 ms, one consistent list of one object, for all callers, compares the version with
// the server's. The list does not prove that the watch is current, so the informer then requests a watch
// that gets a bookmark after one to two seconds (TestWaitForVersionOfOtherObjects). If none arrives, because
// nothing else is written or the server sends no bookmarks, it lists the type after six seconds
// (TestWaitForVersionOnIdleServer, TestWaitForVersionWithoutBookmarks).
//
// If MatchingNamespaces gives each namespace a watch, WaitForVersion does not wait for namespaces that the
// informer has not discovered yet. It discovers a new namespace within milliseconds.
//
// The wait continues while the server cannot be reached, during a relist, and when the type is recreated. It
// ends with
//   - ErrOpaqueVersion if the versions are not numbers (TestWaitForOpaqueVersion),
//   - ErrVersionLost if the server has not reached the version (TestWaitForLostVersion). A server that was
//     restored and has passed the version again is not noticed. Until the informer has listed a restored
//     server, the versions that the cache had before the restore count as reached,
//   - a *NotSyncedError if the type cannot sync, as for WaitForSync: it was deleted, or must not be read. It
//     wraps ErrStopped if the informer stops (TestWaitForVersionGivesUp),
//   - the cause of ctx.
func (i *Informer) WaitForVersion(ctx context.Context, resourceVersion string) error {
	return i.describeWait(i.core.WaitForVersion(ctx, resourceVersion, i.giveUp))
}

// WaitUntilFresh waits until the cache has reached the server's state at the time of the call, like a list
// without a resource version. It returns the server's resource version, also with an error if it is known.
// All callers share the requests. Up to 5,000 objects, a list of metadata shows that the cache is complete; a
// larger cache waits for a bookmark, as in WaitForVersion. A type that is polled is listed. It returns the
// errors of WaitForVersion, and that of the request.
func (i *Informer) WaitUntilFresh(ctx context.Context) (resourceVersion string, err error) {
	resourceVersion, err = i.core.WaitUntilFresh(ctx, i.giveUp)
	return resourceVersion, i.describeWait(err)
}

// WaitForVersion works like Informer.WaitForVersion for every informer of a type. It returns nil if there is
// none. The error joins the errors of all informers.
func (f *Factory) WaitForVersion(ctx context.Context, gvr schema.GroupVersionResource,
	resourceVersion string) error {
	return errors.Join(naming.Map(f.entries(gvr),
		func(e *entry) error { return e.informer.WaitForVersion(ctx, resourceVersion) })...)
}

// AwaitDeletion works like WaitForVersion for a deletion, for which the server returns no resource version.
// Call it before the request, and call the returned function after the request: it waits until the
// cache shows the deletion. The object is then not cached, or has a deletion timestamp. An empty uid
// means the UID of the cached object.
//
// If the object was not cached, for example because it is in another shard, the wait sends a list to
// learn the server's resource version (TestAwaitDeletion). An object that leaves the selector, or is
// replaced by one with another UID, counts as deleted. If another program may replace it before the
// request, delete it with Preconditions.UID.
func (i *Informer) AwaitDeletion(object cache.ObjectName, uid types.UID) func(context.Context) error {
	wait := i.core.AwaitDeletion(object.String(), uid)
	return func(ctx context.Context) error { return i.describeWait(wait(ctx, i.giveUp)) }
}

func (i *Informer) describeWait(err error) error {
	var notSynced *NotSyncedError
	switch {
	case err == nil, errors.As(err, &notSynced):
		return err
	case errors.Is(err, ErrStopped):
		return &NotSyncedError{NotSynced: []status.Status{i.Status()}, Cause: ErrStopped}
	}
	return fmt.Errorf("%s: %w", i.Status(), err)
}

// giveUp is an informer.GiveUp. It returns a *NotSyncedError if the informer cannot sync.
func (i *Informer) giveUp() (<-chan struct{}, error) {
	current, changed := i.StatusChange()
	if current.State == status.Synced || !current.Settled() || i.health.Required() && mayRecover(current) {
		return changed, nil
	}
	return nil, &NotSyncedError{NotSynced: []status.Status{current}}
}
