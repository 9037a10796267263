package dynamicinformer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
)

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
