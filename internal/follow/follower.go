// Package follow controls the life cycle of an informer. It starts an incarnation when the type is served,
// selects the namespaces and the version to read, and ends the incarnation when the type is gone. It sends no
// requests itself; narrow interfaces connect it to the requests, the cache and the status.
package follow

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/queue"
)

// Follower follows one type, in selected versions and namespaces.
type Follower struct {
	// Type is the requested type. Versions can select another version; the requested one can then be empty.
	Type       schema.GroupVersionResource
	Versions   Versions
	Namespaces Namespaces
	// Selections select the objects to follow. Nil means all objects.
	Selections *Selections
	// SelectsNothing states that no object is selected: without requests the cache is complete and empty.
	SelectsNothing bool
	// Types are the served types. If nil, every type is assumed to exist.
	Types *TypeRegistry

	Requests Requests
	Cache    Cache
	Health   Health
	// RestoredState returns the persisted state of a single partition, or of several namespaces, for a type
	// whose CRD has this UID. It returns nil if nothing is persisted. Optional.
	RestoredState func(p PartitionSpec, uid types.UID) informer.PersistedState
	// AllNamespaces provides the namespaces for a set of them, if listing all namespaces is forbidden.
	AllNamespaces func() (NamespaceList, error)
}

// Requests makes the list and watch requests.
type Requests interface {
	// ListWatch returns the requests of a partition. forbidden, if not nil, is called
	// when a request is forbidden, which is then not a failure.
	ListWatch(p PartitionSpec, forbidden func(error)) informer.InlineWatcher
	// AwaitPermission waits until a forbidden partition can be read. It returns false if ctx ends.
	AwaitPermission(ctx context.Context, p PartitionSpec, refusal error) bool
	// Retry ends the pauses after failures.
	Retry()
}

// PartitionSpec describes the requests of a partition, for one reflector. An empty Namespace means all.
type PartitionSpec struct {
	Incarnation        int
	Version, Namespace string
	Kind               string // of the type; empty if unknown
	Namespaced         bool
	// PerNamespace states that the partition represents all namespaces that are read one by one.
	PerNamespace bool
	// Selection selects the objects. Nil means all objects.
	Selection Selection
	// TypeKnown states that a source of types reports the type. NamespaceIsNew states that the namespace was
	// created while the type was followed, so that permissions may follow soon.
	TypeKnown, NamespaceIsNew bool
	// Custom states that the type is known to have a CRD.
	Custom bool
	// ListOnly states that the version is known to support no watch.
	ListOnly bool
}

// Cache stores the objects. It is implemented by *informer.Informer.
type Cache interface {
	RunPartition(ctx context.Context, listed func(), p informer.Partition) error
	RunPartitions(ctx context.Context, listed func(),
		next func(context.Context) ([]informer.Partition, bool)) error
	Forget() error
	Suspend() error
}

// Health receives the progress. It is implemented by *health.Health.
type Health interface {
	SetServed(exists, terminating bool)
	Pending(reason status.Reason, cause error)
	Begin(version string, uid types.UID) (incarnation int)
	SetPartitions(partitions []string, namespaces string, reason status.Reason, err error)
	Synced(incarnation int)
	SetGone(reason status.Reason)
}

// incarnation is a period in which the informer lists and watches one version of the type.
type incarnation struct {
	number  int
	version string
	state   *typeState
}

// Run lists and watches the type while it is served, until ctx ends. It is level-based: it compares the
// current state with the running incarnation, and does not depend on single events. It needs no other
// goroutine unless there are failures.
func (f *Follower) Run(ctx context.Context) {
	if f.Types == nil {
		f.runIncarnation(ctx, &typeState{}, f.Type.Version)
		return
	}
	changed := make(chan struct{}, 1)
	defer f.Types.addWatcher(f.Type.GroupResource(), func() { queue.Wake(changed) })()
	var content *identity
	for {
		state, version := f.awaitVersion(ctx, changed, content)
		if version == "" {
			return
		}
		content = f.runVersion(ctx, state, version)
	}
}

// awaitVersion waits until the type can be followed. It returns no version if ctx ends. content is the type
// of the cached objects; nil if there are none. They stay in the cache until they are known to be deleted. It
// is separate from Run to keep the stack frame of a quiet informer small: see docs/design/types.md.
func (f *Follower) awaitVersion(ctx context.Context, changed <-chan struct{},
	content *identity) (*typeState, string) {
	for ctx.Err() == nil {
		select {
		case <-changed: // observed now
		default:
		}
		state := f.observeType()
		if content != nil && f.forgetDeleted(state, *content) {
			content = nil
		}
		version, reason, cause := state.versionToFollow(f.Type, f.Versions, f.Namespaces)
		if reason == status.ReasonNone {
			return state, version
		}
		if content != nil {
			_ = f.Cache.Suspend() // fails only after a stop
		}
		f.Health.Pending(reason, cause)
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, ""
}

// forgetDeleted empties the cache if the objects are known to be deleted, and reports whether they are.
func (f *Follower) forgetDeleted(state *typeState, content identity) bool {
	reason := state.deletionReason(content)
	if reason == status.ReasonNone {
		return false
	}
	// Handlers receive the deletion of each object. Forget fails only after a stop, when they receive none.
	_ = f.Cache.Forget()
	f.Health.SetGone(reason)
	return true
}

func (f *Follower) observeType() *typeState {
	state := f.Types.get(f.Type.GroupResource())
	f.Health.SetServed(state.exists, state.Terminating)
	return state
}

// runVersion runs an incarnation until its version of the type is no longer served, or ctx ends. It returns
// the type of the cached objects.
//
// The incarnation ends before the next starts, because two must not write to one cache. No events are lost,
// because a version that is not served any more sends none. The first list of the next incarnation then
// replaces the content as in a relist: objects that still exist are delivered as updates.
func (f *Follower) runVersion(ctx context.Context, state *typeState, version string) *identity {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &incarnationWatcher{Follower: f, identity: identityOf(&state.Type), version: version,
		polls: state.polls(version), cancel: cancel}
	stop := f.Types.addWatcher(f.Type.GroupResource(), e.onTypeChange)
	e.check() // for changes before notify
	f.runIncarnation(running, state, version)
	stop()
	content := e.finish()
	return &content
}

// runIncarnation lists and watches a version until ctx ends. No goroutine remains when it returns.
func (f *Follower) runIncarnation(ctx context.Context, state *typeState, version string) {
	number := f.Health.Begin(version, state.UID)
	f.listAndWatch(ctx, &incarnation{number: number, version: version, state: state})
	<-ctx.Done()
}

// incarnationWatcher ends the incarnation of a version of a type when the type changes. It needs no
// goroutine, because the source of the change calls it.
type incarnationWatcher struct {
	*Follower
	version string
	polls   bool               // the incarnation lists and does not watch
	cancel  context.CancelFunc // ends the incarnation

	mu       sync.Mutex // serializes check
	identity identity
	ended    bool
}

// onTypeChange is called after a change of the type.
func (e *incarnationWatcher) onTypeChange() {
	if !e.check() {
		// Requests may be in a pause after a failure that the change resolved.
		e.Requests.Retry()
	}
}

// check ends the incarnation if its version of the type is no longer served, and reports whether it is over.
func (e *incarnationWatcher) check() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return true
	}
	state := e.observeType()
	if e.ended = !state.isServed(e.identity, e.version, e.polls); e.ended {
		e.cancel()
	} else if e.identity.uid == "" {
		e.identity.uid = state.UID // the UID of the same type became known
	}
	return e.ended
}

// finish makes later checks do nothing. It returns the identity of the type whose objects the cache has.
func (e *incarnationWatcher) finish() identity {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	return e.identity
}
