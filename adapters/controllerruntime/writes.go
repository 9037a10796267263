package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
)

// maxWrites limits the recorded versions of the objects of a kind, and the recorded deletions. Older writes
// are combined.
const maxWrites = 1000

// writeLog has the writes of a client that a cache may not have yet. It decides which states a read needs.
// The informers decide whether they have reached them.
type writeLog struct {
	cache *Cache
	mu    sync.Mutex
	kinds map[schema.GroupKind]*kindWrites
}

// kindWrites are the writes of the objects of one kind. writeLog.mu guards it.
type kindWrites struct {
	// pending has the running writes, and completed writes with unknown version: mostly deletions.
	pending map[*write]struct{}
	// versions has the latest resource version of each object, of each namespace (a key without a name) and
	// of all objects (the empty key). minVersion is a version at least as late as every dropped version.
	versions   map[types.NamespacedName]string
	minVersion string
}

// write is one write, or several that were combined.
type write struct {
	key types.NamespacedName
	// affectsUnknownObjects is set if the written objects are not known.
	affectsUnknownObjects bool
	// deletes is true for a deletion of the object with the UID uid, or with any if that is empty.
	deletes bool
	uid     types.UID
	// version is the resource version that the server has returned, or empty if it has returned none.
	version   string
	succeeded bool
	done      chan struct{} // closed when the write has ended
	// waits wait until the cache of an informer shows a deletion, for informers that existed before it. The
	// value is nil once the informer has shown the write. writeLog.mu guards it after the write has ended.
	waits map[*dynamicinformer.Informer]func(context.Context) error
}

func newWriteLog(c *Cache) *writeLog {
	return &writeLog{cache: c, kinds: map[schema.GroupKind]*kindWrites{}}
}

func (l *writeLog) kindLocked(gk schema.GroupKind) *kindWrites {
	k := l.kinds[gk]
	if k == nil {
		k = &kindWrites{pending: map[*write]struct{}{}, versions: map[types.NamespacedName]string{}}
		l.kinds[gk] = k
	}
	return k
}

// begin records that a write begins.
func (l *writeLog) begin(ctx context.Context, gk schema.GroupKind, started write) *write {
	w := &started
	w.done, w.waits = make(chan struct{}), map[*dynamicinformer.Informer]func(context.Context) error{}
	if w.deletes {
		l.mu.Lock()
		k := l.kindLocked(gk)
		latest := newestVersion(k.minVersion, k.versions[w.key])
		l.mu.Unlock()
		for _, informer := range l.cache.informersOf(gk, w) {
			// The cache may have an earlier object of the same name, with another UID.
			if w.uid == "" && latest != "" && informer.WaitForVersion(ctx, latest) != nil {
				continue
			}
			w.waits[informer] = informer.AwaitDeletion(toolscache.ObjectName(w.key), w.uid)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kindLocked(gk).pending[w] = struct{}{}
	return w
}

// end records that a write has ended.
func (l *writeLog) end(gk schema.GroupKind, w *write, succeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kindLocked(gk)
	if w.succeeded = succeeded; !succeeded || w.version != "" {
		delete(k.pending, w)
	}
	if succeeded && w.version != "" {
		k.recordVersion(w.key, w.version)
	}
	close(w.done)
	if len(k.pending) > maxWrites {
		k.combine()
	}
}

// combine replaces the completed pending writes by one.
func (k *kindWrites) combine() {
	combined := &write{affectsUnknownObjects: true, succeeded: true, done: make(chan struct{}),
		waits: map[*dynamicinformer.Informer]func(context.Context) error{}}
	close(combined.done)
	maps.DeleteFunc(k.pending, func(w *write, _ struct{}) bool { return w.succeeded })
	k.pending[combined] = struct{}{}
}

func (k *kindWrites) recordVersion(key types.NamespacedName, version string) {
	if len(k.versions) >= maxWrites {
		k.minVersion = newestVersion(k.minVersion, k.versions[types.NamespacedName{}])
		clear(k.versions)
	}
	for _, key := range []types.NamespacedName{key, {Namespace: key.Namespace}, {}} {
		k.versions[key] = newestVersion(k.versions[key], version)
	}
}

// newestVersion returns the larger of two versions, or the second if they are not numbers: reads then fail.
func newestVersion(a, b string) string {
	if b == "" || naming.IsOlder(b, a) {
		return a
	}
	return b
}

// await waits until the caches of informers show the writes that concern a read of an object, or of a list if
// the key has no name. An empty namespace of a list means all. A nil log has no writes.
func (l *writeLog) await(ctx context.Context, r *resource, key types.NamespacedName,
	informers ...*scopedInformer) error {
	if l == nil {
		return nil
	}
	gk := r.key.gvk.GroupKind()
	for _, v := range informers {
		version, pending := l.required(gk, key, v)
		var err error
		for _, w := range pending {
			if err = l.awaitWrite(ctx, gk, w, v.informer()); err != nil {
				break
			}
		}
		if len(pending) > 0 {
			version, _ = l.required(gk, key, v) // with the versions of the awaited writes
		}
		if err == nil && version != "" {
			err = l.awaitVersion(ctx, gk, v.informer(), version)
		}
		if err != nil {
			return fmt.Errorf("wait until the cache of %s shows the writes of this client: %w", r.key.gvk, err)
		}
	}
	return nil
}

// required returns the version and the pending writes that the cache of an informer has to show for a read.
func (l *writeLog) required(gk schema.GroupKind, key types.NamespacedName,
	v *scopedInformer) (version string, pending []*write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[gk]
	if k == nil {
		return "", nil
	}
	for w := range k.pending {
		wait, exists := w.waits[v.informer()]
		isRead := w.key == key || key.Name == "" && (key.Namespace == "" || key.Namespace == w.key.Namespace)
		isShown := exists && wait == nil
		if !isShown && (w.affectsUnknownObjects || isRead && v.serves(w.key.Namespace)) {
			pending = append(pending, w)
		}
	}
	version = k.minVersion
	if key != (types.NamespacedName{}) || len(v.informerSet.informersByNamespace) == 1 {
		return newestVersion(version, k.versions[key]), pending
	}
	for recorded, latest := range k.versions {
		if recorded != key && v.serves(recorded.Namespace) {
			version = newestVersion(version, latest)
		}
	}
	return version, pending
}

// awaitWrite waits until a pending write has ended and the cache of an informer shows it, unless the write
// has a version.
func (l *writeLog) awaitWrite(ctx context.Context, gk schema.GroupKind, w *write,
	informer *dynamicinformer.Informer) error {
	select {
	case <-w.done:
	case <-ctx.Done():
		return fmt.Errorf("wait for a write of %s: %w", gk, context.Cause(ctx))
	}
	l.mu.Lock()
	wait, exists := w.waits[informer]
	l.mu.Unlock()
	if !w.succeeded || w.version != "" || exists && wait == nil {
		return nil
	}
	if !exists { // the object is not known, or the informer is younger than the write
		wait = informer.AwaitDeletion(toolscache.ObjectName{}, "")
	}
	if err := wait(ctx); err != nil {
		return ignoreAbsentType(err)
	}
	l.confirm(gk, w, informer)
	return nil
}

// awaitVersion waits until the cache of an informer has reached a version, or its type does not exist.
func (l *writeLog) awaitVersion(ctx context.Context, gk schema.GroupKind, informer *dynamicinformer.Informer,
	version string) error {
	err := informer.WaitForVersion(ctx, version)
	if err == nil {
		return nil // without allocations
	}
	if errors.Is(err, dynamicinformer.ErrVersionLost) { // the server was restored; this read fails
		l.mu.Lock()
		defer l.mu.Unlock()
		k := l.kindLocked(gk)
		clear(k.versions)
		k.minVersion = ""
	}
	return ignoreAbsentType(err)
}

// ignoreAbsentType returns nil if err means that the type does not exist, because it then has no objects.
func ignoreAbsentType(err error) error {
	var failure *dynamicinformer.NotSyncedError
	if errors.As(err, &failure) && len(failure.NotSynced) == 1 && failure.NotSynced[0].Reason.Absent() &&
		!failure.NotSynced[0].Suspended {
		return nil
	}
	return err
}

// confirm records that the cache of an informer shows a write without a version. When all informers that can
// have the object show it, their resource version replaces it, for later informers.
func (l *writeLog) confirm(gk schema.GroupKind, w *write, informer *dynamicinformer.Informer) {
	version := informer.LastSyncResourceVersion()
	informers := l.cache.informersOf(gk, w)
	l.mu.Lock()
	defer l.mu.Unlock()
	w.waits[informer] = nil
	if slices.ContainsFunc(informers, func(informer *dynamicinformer.Informer) bool {
		wait, exists := w.waits[informer]
		return !exists || wait != nil
	}) {
		return
	}
	k := l.kindLocked(gk)
	delete(k.pending, w)
	if w.affectsUnknownObjects {
		k.minVersion = newestVersion(k.minVersion, version)
	} else if version != "" {
		k.recordVersion(w.key, version)
	}
}

// informersOf returns the informers of a kind that can have the object of a write, in all forms and versions.
func (c *Cache) informersOf(gk schema.GroupKind, w *write) (informers []*dynamicinformer.Informer) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for key, r := range c.mu.resources {
		if key.gvk.GroupKind() != gk {
			continue
		}
		for _, v := range r.allInformers() {
			if w.affectsUnknownObjects || v.serves(w.key.Namespace) {
				informers = append(informers, v.informer())
			}
		}
	}
	return informers
}
