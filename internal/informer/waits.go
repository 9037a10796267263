package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/store"
)

var (
	// ErrOpaqueVersion is returned by waits for a resource version if it is not a positive number, or if the
	// server's versions are not.
	ErrOpaqueVersion = errors.New("resource versions that are not numbers cannot be compared")
	// ErrVersionLost is returned by waits for a resource version that the server has not reached. The server
	// was restored from a backup, or the version is of another server.
	ErrVersionLost = errors.New("the server has not reached the resource version: it was restored from a backup, or the version is of another server")
)

// versionWait is a caller that waits for the cache to reach a state of the server.
type versionWait struct {
	// version is the resource version to reach. For a deletion it is empty until a probe has returned one.
	version string
	// deleted is true if the wait is for a deletion and version is the result of a probe.
	deleted bool
	// deletion, if not nil, is a deletion that also ends the wait.
	deletion *expectedDeletion
	// isFresh is true if the wait is for the server's state at its beginning. It fails if the probe fails.
	isFresh bool
	// overdue is true if the watch did not deliver the state soon. The wait then needs a probe.
	overdue bool
	// probeSent is true if a probe has begun since the wait began.
	probeSent bool
	// probed is the time of the first probe that showed that the server has reached version, or of the last
	// request to list the type; zero before.
	probed time.Time
	done   chan struct{} // closed when the wait is over
	err    error         // the result, when done is closed
}

// expectedDeletion is the expected deletion of a cached object.
type expectedDeletion struct {
	key string
	uid types.UID
	// terminating is true if the object already had a deletion timestamp, so that only its removal counts.
	terminating bool
	lastItem    Item // the object at the last call of isObserved
}

// versionWaits are the waits of an informer. It is guarded by Informer.mu.
type versionWaits struct {
	pending []*versionWait
	// probing: runProbes runs. changed receives a value when a wait becomes overdue or such a wait ends.
	probing bool
	changed chan struct{}
}

// GiveUp returns an error if a wait cannot succeed. Otherwise it returns a channel that is closed when that
// may have changed. It is called when a wait is overdue.
type GiveUp func() (changed <-chan struct{}, err error)

// WaitForVersion waits until the cache has everything up to a resource version: until a list, an event or a
// bookmark of each stream has reached it. If the streams do not reach it soon, one probe for all waits
// compares it with the server's version and makes the streams request bookmarks, or list.
//
// It returns ErrOpaqueVersion, ErrVersionLost, ErrStopped, the error of giveUp, or the cause of ctx.
func (i *Informer) WaitForVersion(ctx context.Context, version string, giveUp GiveUp) error {
	if !naming.IsVersion(version) {
		return fmt.Errorf("wait for resource version %q: %w", version, ErrOpaqueVersion)
	}
	i.mu.Lock()
	reached, _ := i.hasReachedLocked(version) // await returns the error
	i.mu.Unlock()
	if reached {
		return nil
	}
	return i.await(ctx, &versionWait{version: version}, giveUp)
}

// WaitUntilFresh is described at dynamicinformer.Informer.WaitUntilFresh. One probe serves all callers. Its
// errors are those of WaitForVersion and of a failed probe.
func (i *Informer) WaitUntilFresh(ctx context.Context, giveUp GiveUp) (version string, err error) {
	i.mu.Lock()
	polls, before := false, "1"
	for _, w := range i.mu.streams {
		polls = polls || w.lw.Polls()
		before = laterVersion(before, w.observedVersion)
	}
	i.mu.Unlock()
	if polls {
		return "", i.Relist(ctx)
	}
	w := &versionWait{isFresh: true}
	err = i.await(ctx, w, giveUp)
	if err == nil && naming.IsOlder(w.version, before) || errors.Is(err, ErrOpaqueVersion) {
		err = i.Relist(ctx) // the server was restored, or versions cannot be compared
	}
	return w.version, err
}

// AwaitDeletion is described at dynamicinformer.Informer.AwaitDeletion. If the object was not cached before,
// or had a deletion timestamp, only its removal or a probe ends the wait.
func (i *Informer) AwaitDeletion(key string, uid types.UID) func(context.Context, GiveUp) error {
	var expected *expectedDeletion
	if stored, found := i.store.Snapshot().Get(key); found && (uid == "" || uid == store.UIDOf(stored)) {
		expected = &expectedDeletion{key: key, uid: store.UIDOf(stored), terminating: isTerminating(stored),
			lastItem: stored}
	}
	return func(ctx context.Context, giveUp GiveUp) error {
		w := &versionWait{}
		if expected != nil {
			copied := *expected
			w.deletion = &copied
		}
		return i.await(ctx, w, giveUp)
	}
}

// await waits until w is done. If that takes long, w becomes overdue and is probed.
func (i *Informer) await(ctx context.Context, w *versionWait, giveUp GiveUp) error {
	w.done = make(chan struct{})
	if i.addWait(w) {
		return w.err
	}
	defer i.removeWait(w)
	delay := probeDelay
	if w.isFresh {
		delay = 0
	}
	overdue := time.NewTimer(delay)
	defer overdue.Stop()
	var changed <-chan struct{} // nil until the wait is overdue and giveUp has been called
	for {
		select {
		case <-w.done:
			return w.err
		case <-i.stopping:
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", i.describeWait(w), context.Cause(ctx))
		case <-overdue.C:
			i.startProbes(w)
		case <-changed:
		}
		var err error
		if changed, err = giveUp(); err != nil {
			return err
		}
	}
}

// addWait adds a wait, and returns false; or returns true if the cache has already reached its state.
func (i *Informer) addWait(w *versionWait) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.isSatisfiedLocked(w) {
		return true
	}
	i.mu.waits.pending = append(i.mu.waits.pending, w)
	return false
}

func (i *Informer) removeWait(w *versionWait) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.waits.pending = slices.DeleteFunc(i.mu.waits.pending,
		func(other *versionWait) bool { return other == w })
	if !i.mu.waits.anyOverdue() {
		i.mu.waits.notify()
	}
}

func (w *versionWaits) anyOverdue() bool {
	return slices.ContainsFunc(w.pending, func(pendingWait *versionWait) bool { return pendingWait.overdue })
}

func (i *Informer) describeWait(w *versionWait) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if w.version == "" {
		return "a deletion"
	}
	return "resource version " + w.version
}

// notify wakes runProbes.
func (w *versionWaits) notify() {
	if w.probing {
		queue.Wake(w.changed)
	}
}

// releaseWaitsLocked ends the waits for states that the cache has reached.
func (i *Informer) releaseWaitsLocked() {
	if len(i.mu.waits.pending) == 0 {
		return
	}
	i.mu.waits.pending = slices.DeleteFunc(i.mu.waits.pending, func(w *versionWait) bool {
		isOver := i.isSatisfiedLocked(w)
		if isOver {
			close(w.done)
		}
		return isOver
	})
}

// failWaitsLocked ends the waits for which fails returns an error.
func (i *Informer) failWaitsLocked(fails func(*versionWait) error) {
	i.mu.waits.pending = slices.DeleteFunc(i.mu.waits.pending, func(w *versionWait) bool {
		err := fails(w)
		if err != nil {
			w.err = fmt.Errorf("wait for resource version %s: %w", w.version, err)
			close(w.done)
		}
		return err != nil
	})
}

// isSatisfiedLocked reports whether the cache has reached the awaited state. It sets w.err if it cannot.
func (i *Informer) isSatisfiedLocked(w *versionWait) bool {
	if w.deletion != nil && w.deletion.isObserved(i) {
		return true
	}
	reached, err := i.hasReachedLocked(w.version)
	if err != nil {
		w.err = fmt.Errorf("wait for resource version %s: %w", w.version, err)
		return true
	}
	return reached
}

// hasReachedLocked reports whether each stream has reached a version. It returns true if there are no
// streams, because no objects are selected then.
func (i *Informer) hasReachedLocked(version string) (bool, error) {
	g := i.mu.current
	if g == nil || g.pendingLists > 0 || !i.HasSynced() {
		return false, nil
	}
	for _, p := range i.mu.partitions {
		if reached, err := hasReached(p.observedVersion, version); !reached {
			return false, err
		}
	}
	return true, nil
}

func hasReached(observed, version string) (bool, error) {
	switch {
	case observed == "" || version == "":
		return false, nil
	case !naming.IsVersion(observed):
		return false, ErrOpaqueVersion
	}
	return !naming.IsOlder(observed, version), nil
}

// observedListLocked returns the version that a stream has reached with a list. If that is older than before,
// it ends the waits for later versions, which the server lost when it was restored from a backup.
func (i *Informer) observedListLocked(before, listed string) string {
	if naming.IsOlder(listed, before) {
		i.failWaitsLocked(func(w *versionWait) error {
			if naming.IsOlder(listed, w.version) {
				return ErrVersionLost
			}
			return nil
		})
	}
	if listed == "" {
		return "0" // not a version
	}
	return listed
}

// isObserved reports whether the cache shows the deletion.
func (d *expectedDeletion) isObserved(i *Informer) bool {
	stored, found := i.store.Snapshot().Get(d.key)
	if !found || store.UIDOf(stored) != d.uid {
		return true
	}
	if stored == d.lastItem {
		return false
	}
	d.lastItem = stored
	return !d.terminating && isTerminating(stored)
}

func isTerminating(item Item) bool {
	m, err := meta.Accessor(item)
	return err == nil && m.GetDeletionTimestamp() != nil
}
