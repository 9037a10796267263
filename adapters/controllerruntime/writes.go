package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// maxWrites limits the recorded versions of the objects of a kind, of their namespaces, and the recorded
// deletions. Older writes are combined.
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
	runningWrites map[*write]struct{}
	// versions has the latest resource version of each object, and namespaces the latest one in each
	// namespace. minVersion is a version at least as late as every dropped version.
	versions   map[types.NamespacedName]string
	namespaces map[string]string
	minVersion string
	// unversioned are completed writes with unknown version: mostly deletions.
	unversioned []*write
}

// write is one write, or several that were combined.
type write struct {
	key types.NamespacedName
	// affectsUnknownObjects is set if the written objects are not known.
	affectsUnknownObjects bool
	// deletes is true for a deletion. uid is the UID of the deleted object, or empty if it is not known.
	deletes bool
	uid     types.UID
	// version is the resource version that the server has returned, or empty if it has returned none.
	version string
	done    chan struct{} // closed when the write has ended
	// deletionWaits wait until the cache of an informer that existed before the deletion shows it.
	deletionWaits map[*dynamicinformer.Informer]func(context.Context) error
	// cachedBy are the informers that have the write in their caches; guarded by writeLog.mu.
	cachedBy []*dynamicinformer.Informer
}

func newWriteLog(c *Cache) *writeLog {
	return &writeLog{cache: c, kinds: map[schema.GroupKind]*kindWrites{}}
}

func (l *writeLog) kindLocked(gk schema.GroupKind) *kindWrites {
	k := l.kinds[gk]
	if k == nil {
		k = &kindWrites{runningWrites: map[*write]struct{}{}}
		k.reset()
		l.kinds[gk] = k
	}
	return k
}

func (k *kindWrites) reset() {
	k.versions, k.namespaces = map[types.NamespacedName]string{}, map[string]string{}
}

// begin records that a write begins.
func (l *writeLog) begin(gk schema.GroupKind, started write) *write {
	w := &started
	w.done = make(chan struct{})
	if w.deletes {
		l.mu.Lock()
		k := l.kindLocked(gk)
		latest := newestVersion(k.minVersion, k.versions[w.key])
		l.mu.Unlock()
		w.deletionWaits = l.cache.awaitDeletion(gk, w, latest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kindLocked(gk).runningWrites[w] = struct{}{}
	return w
}

// end records that a write has ended.
func (l *writeLog) end(gk schema.GroupKind, w *write, succeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := l.kindLocked(gk)
	delete(kind.runningWrites, w)
	close(w.done)
	switch {
	case !succeeded:
	case w.version == "":
		kind.unversioned = append(kind.unversioned, w)
		if len(kind.unversioned) > maxWrites {
			kind.unversioned = []*write{{affectsUnknownObjects: true}}
		}
	default:
		kind.recordVersion(w.key, w.version)
	}
}

func (k *kindWrites) recordVersion(key types.NamespacedName, version string) {
	if len(k.versions) >= maxWrites || len(k.namespaces) >= maxWrites {
		for _, latest := range k.namespaces {
			k.minVersion = newestVersion(k.minVersion, latest)
		}
		k.reset()
	}
	k.versions[key] = newestVersion(k.versions[key], version)
	k.namespaces[key.Namespace] = newestVersion(k.namespaces[key.Namespace], version)
}

// newestVersion returns the larger of two versions, or the second if they are not numbers: reads then fail.
func newestVersion(a, b string) string {
	if digits := strings.Trim(b, "0123456789") == ""; digits && (len(a) > len(b) || len(a) == len(b) && a > b) {
		return a
	}
	return b
}

// awaitGet waits until the cache shows the writes that concern a Get.
func (l *writeLog) awaitGet(ctx context.Context, key client.ObjectKey, example client.Object) error {
	r, _, err := l.cache.informerToGet(ctx, key, example)
	if err != nil {
		return err
	}
	target := key
	if !r.namespaced {
		target.Namespace = ""
	}
	return r.read(func(s *informerSet) error {
		if scoped := s.forNamespace(key.Namespace); scoped != nil { // nil: the settings have changed
			return l.await(ctx, r, &target, "", scoped)
		}
		return nil
	})
}

// awaitList waits until the cache shows the writes that concern a List.
func (l *writeLog) awaitList(ctx context.Context, list client.ObjectList, options *client.ListOptions) error {
	r, err := l.cache.resourceToList(ctx, list, options)
	if err != nil {
		return err
	}
	return r.read(func(s *informerSet) error {
		namespace, informers, err := r.informersToList(ctx, s, options.Namespace)
		if err != nil {
			return err
		}
		return l.await(ctx, r, nil, namespace, informers...)
	})
}

// await waits until the informers of a resource show the writes that concern a read of an object, or of a
// list if key is nil. An empty namespace means all.
func (l *writeLog) await(ctx context.Context, r *resource, key *types.NamespacedName, namespace string,
	informers ...*scopedInformer) error {
	gk := r.key.gvk.GroupKind()
	version, isKnown := l.onlyVersion(gk, key, namespace)
	var err error
	switch {
	case isKnown && version == "":
		return nil
	case isKnown && len(informers) == 1:
		err = l.awaitVersion(ctx, gk, informers[0].informer(), version)
	default:
		err = l.awaitAll(ctx, r, key, namespace, informers)
	}
	if err != nil {
		return fmt.Errorf("wait until the cache of %s shows the writes of this client: %w", r.key.gvk, err)
	}
	return nil
}

// onlyVersion returns the version that a read needs if it needs nothing else: the frequent case, without
// allocations.
func (l *writeLog) onlyVersion(gk schema.GroupKind, key *types.NamespacedName,
	namespace string) (version string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := l.kinds[gk]
	switch {
	case kind == nil:
		return "", true
	case len(kind.runningWrites) > 0 || len(kind.unversioned) > 0:
		return "", false
	case key != nil:
		return newestVersion(kind.minVersion, kind.versions[*key]), true
	case namespace != "":
		return newestVersion(kind.minVersion, kind.namespaces[namespace]), true
	}
	version = kind.minVersion
	for _, latest := range kind.namespaces {
		version = newestVersion(version, latest)
	}
	return version, true
}

func (l *writeLog) awaitAll(ctx context.Context, r *resource, key *types.NamespacedName, namespace string,
	informers []*scopedInformer) error {
	gk := r.key.gvk.GroupKind()
	affects := func(w *write) bool {
		return w.affectsUnknownObjects || key != nil && w.key == *key ||
			key == nil && (namespace == "" || w.key.Namespace == namespace)
	}
	if err := l.awaitRunning(ctx, gk, affects); err != nil {
		return err
	}
	for _, v := range informers {
		inView := func(w *write) bool {
			return affects(w) && (w.affectsUnknownObjects || v.informerSet.forNamespace(w.key.Namespace) == v)
		}
		if err := l.awaitWrites(ctx, gk, v.informer(), key, inView); err != nil {
			return err
		}
	}
	return nil
}

// awaitRunning waits for the running writes that concern a read.
func (l *writeLog) awaitRunning(ctx context.Context, gk schema.GroupKind, affects func(*write) bool) error {
	l.mu.Lock()
	var running []*write
	for w := range l.kindLocked(gk).runningWrites {
		if affects(w) {
			running = append(running, w)
		}
	}
	l.mu.Unlock()
	for _, w := range running {
		select {
		case <-w.done:
		case <-ctx.Done():
			return fmt.Errorf("wait for a write of %s: %w", gk, context.Cause(ctx))
		}
	}
	return nil
}

// requiredWrites returns the writes that the cache of an informer has to show: the latest version, and writes
// without a version. key is nil for a list.
func (l *writeLog) requiredWrites(gk schema.GroupKind, informer *dynamicinformer.Informer,
	key *types.NamespacedName,
	isSelected func(*write) bool) (version string, unversioned []*write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := l.kindLocked(gk)
	version = kind.minVersion
	if key != nil {
		version = newestVersion(version, kind.versions[*key])
	} else {
		for namespace, latest := range kind.namespaces {
			if isSelected(&write{key: types.NamespacedName{Namespace: namespace}}) {
				version = newestVersion(version, latest)
			}
		}
	}
	for _, w := range kind.unversioned {
		if isSelected(w) && !slices.Contains(w.cachedBy, informer) {
			unversioned = append(unversioned, w)
		}
	}
	return version, unversioned
}

// awaitWrites waits until the cache of an informer shows writes, or its type does not exist.
func (l *writeLog) awaitWrites(ctx context.Context, gk schema.GroupKind, informer *dynamicinformer.Informer,
	key *types.NamespacedName, inView func(*write) bool) error {
	version, unversioned := l.requiredWrites(gk, informer, key, inView)
	if version != "" {
		if err := l.awaitVersion(ctx, gk, informer, version); err != nil {
			return err
		}
	}
	for _, w := range unversioned {
		wait := w.deletionWaits[informer]
		if wait == nil { // the object is not known, or the informer is younger than the write
			wait = informer.AwaitDeletion(toolscache.ObjectName{}, "")
		}
		if err := wait(ctx); err != nil {
			return ignoreAbsentType(err)
		}
		l.confirm(gk, w, informer)
	}
	return nil
}

// awaitVersion waits until the cache of an informer has reached a version, or its type does not exist.
func (l *writeLog) awaitVersion(ctx context.Context, gk schema.GroupKind, informer *dynamicinformer.Informer,
	version string) error {
	err := informer.WaitForVersion(ctx, version)
	if errors.Is(err, dynamicinformer.ErrVersionLost) {
		l.forgetVersions(gk)
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

// forgetVersions forgets the versions that a restored server has lost. The read that noticed this fails.
func (l *writeLog) forgetVersions(gk schema.GroupKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kindLocked(gk)
	k.reset()
	k.minVersion = ""
}

// confirm records that the cache of an informer shows a write without a version. When all informers that can
// have the object show it, their resource version replaces it, for later informers.
func (l *writeLog) confirm(gk schema.GroupKind, w *write, informer *dynamicinformer.Informer) {
	version := informer.LastSyncResourceVersion()
	informers := l.cache.informersOf(gk, w)
	l.mu.Lock()
	defer l.mu.Unlock()
	w.cachedBy = append(w.cachedBy, informer)
	if slices.ContainsFunc(informers,
		func(informer *dynamicinformer.Informer) bool { return !slices.Contains(w.cachedBy, informer) }) {
		return
	}
	k := l.kindLocked(gk)
	k.unversioned = slices.DeleteFunc(k.unversioned, func(other *write) bool { return other == w })
	switch {
	case version == "":
	case w.affectsUnknownObjects:
		k.minVersion = newestVersion(k.minVersion, version)
	default:
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
			if w.affectsUnknownObjects || v.informerSet.forNamespace(w.key.Namespace) == v {
				informers = append(informers, v.informer())
			}
		}
	}
	return informers
}

// awaitDeletion calls AwaitDeletion of all informers that can have the object of a deletion. latest is the
// version of the last write of the object. Without a UID it omits caches that lack that write: they may have
// an earlier object of the same name.
func (c *Cache) awaitDeletion(gk schema.GroupKind, w *write,
	latest string) map[*dynamicinformer.Informer]func(context.Context) error {
	waits := map[*dynamicinformer.Informer]func(context.Context) error{}
	key := toolscache.ObjectName(w.key)
	for _, i := range c.informersOf(gk, w) {
		if w.uid == "" && latest != "" {
			stored, exists, err := i.GetStore().GetByKey(key.String())
			if err != nil || !exists || newestVersion(latest, versionOf(stored)) == latest &&
				versionOf(stored) != latest {
				continue
			}
		}
		waits[i] = i.AwaitDeletion(key, w.uid)
	}
	return waits
}
