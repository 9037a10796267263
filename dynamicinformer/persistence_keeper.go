package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/store"
)

// keeping is what the informers of a factory share to keep what they hold.
type keeping struct {
	Persistence
	cluster  *cluster
	interval time.Duration
	// saving holds a token while an informer saves: one at a time does.
	saving chan struct{}
}

// newKeeping returns nil where nothing is to be kept.
func newKeeping(options Options, client dynamic.Interface) *keeping {
	if options.Persistence == nil {
		return nil
	}
	return &keeping{
		Persistence: options.Persistence, cluster: newCluster(client), interval: options.PersistenceInterval,
		saving: make(chan struct{}, 1),
	}
}

// keeper keeps what one informer holds. No event passes it: now and then it compares the present content, which never
// changes, with the one that it saved last. What it keeps in memory for that is what the changes between the two have
// replaced.
type keeper struct {
	*keeping
	informer *Informer
	key      string
	// why says why nothing is kept; empty where it is.
	why string

	mu struct {
		sync.Mutex
		view PersistedView // nil: not claimed
		// saved is what is kept, as far as it is known; nil: not known.
		saved *store.Snapshot
		// of is what saved was brought by.
		of *past
		// due is when to try again after a failure.
		due      time.Time
		timer    *time.Timer
		finished bool
	}
	told struct {
		sync.Mutex
		status PersistenceStatus
	}
}

// retryPause is how long nothing is tried after a failure.
const retryPause = time.Minute

func newKeeper(i *Informer) *keeper {
	k := &keeper{informer: i, keeping: i.source.keeping}
	k.why = i.options.whyNotKept(i.gvr)
	if k.keeping == nil {
		k.why = "the factory has no Persistence"
	}
	k.told.status = PersistenceStatus{Kept: k.why == "", Why: k.why}
	if k.why == "" {
		k.key = i.options.persistenceKey(i.gvr)
	}
	return k
}

var secrets = schema.GroupResource{Resource: "secrets"}

// whyNotKept says why what the options describe is not kept; empty where it is.
func (o ResourceOptions) whyNotKept(gvr schema.GroupVersionResource) string {
	switch {
	case o.Persist != nil && !*o.Persist:
		return "ResourceOptions.Persist says so"
	case o.Persist == nil && gvr.GroupResource() == secrets:
		return "Secrets are kept only where ResourceOptions.Persist says so"
	case o.Transform != nil && !isStripManagedFields(o.Transform):
		return "it has a Transform, which may be another one in the next process"
	case o.TweakListOptions != nil:
		return "it has TweakListOptions, which may be others in the next process"
	case o.Shard.followed() != nil:
		return "it is a shard, which may be another one in the next process"
	case o.matchesNothing():
		return "its selector matches nothing"
	}
	return ""
}

// persistenceKey identifies what the options describe beyond the process.
func (o ResourceOptions) persistenceKey(gvr schema.GroupVersionResource) string {
	view := o.view()
	content := "whole"
	if view.storage.Mode == StorageMetadata {
		content = StorageMetadata.String()
	}
	prune := o.Prune
	if isStripManagedFields(o.Transform) {
		prune.Presets = append(slices.Clone(prune.Presets), PruneManagedFields)
	}
	return fmt.Sprintf("2 %q %q %q %q %q %q %q %s", gvr.Group, gvr.Version, gvr.Resource, view.versions, view.namespaces, view.labels, view.fields, content+" "+prune.key())
}

// start has the content saved from now on.
func (k *keeper) start() {
	if k.why != "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.timer = time.AfterFunc(k.pause(), k.tick) // ended by finish
}

// pause is between two looks. What has changed since a look is behind by that, and by what saving takes.
func (k *keeper) pause() time.Duration { return k.interval * 4 / 5 }

func (k *keeper) tick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.finished {
		return
	}
	k.saveLocked()
	k.mu.timer.Reset(k.pause())
}

// finish saves what is left to save, and gives the view up.
func (k *keeper) finish() {
	if k.why != "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.finished = true
	k.mu.timer.Stop()
	k.mu.due = time.Time{}
	k.saveLocked()
	if k.mu.view != nil {
		k.note(k.mu.view.Close())
	}
	k.mu.view, k.mu.saved = nil, nil
}

// saveLocked saves what has changed since the last time.
func (k *keeper) saveLocked() {
	now, by, resuming := k.informer.core.Checkpoint()
	of, ok := by.(*past)
	if !ok && !resuming {
		k.mu.saved = nil // or it would hold objects in memory that nobody shows any more
	}
	if !ok || time.Now().Before(k.mu.due) {
		return
	}
	if was := k.mu.saved; was != nil && was.ResourceVersion() == now.ResourceVersion() && k.mu.of == of {
		return
	}
	k.saving <- struct{}{} // given back by whoever saves, in as much time as that takes
	defer func() { <-k.saving }()
	at, err := k.save(now, of)
	if err != nil {
		k.mu.saved, k.mu.due = nil, time.Now().Add(retryPause)
		k.note(fmt.Errorf("keeping %s: %w", formatGVR(k.informer.gvr), err))
		return
	}
	k.mu.saved, k.mu.of = now, of
	k.told.Lock()
	defer k.told.Unlock()
	k.told.status.Checkpoint, k.told.status.Err = at, nil
}

// errNoCluster is for a server that is not told apart from others.
var errNoCluster = errors.New("it is not known which cluster this is: the namespace kube-system cannot be read, and the client is not one of this package")

func (k *keeper) save(now *store.Snapshot, of *past) (Checkpoint, error) {
	uid, err := k.cluster.id(context.Background()) // which has patience of its own
	if err != nil {
		return Checkpoint{}, err
	}
	if uid == "" && k.cluster.endpoint == "" {
		return Checkpoint{}, errNoCluster
	}
	if err := k.claimLocked(); err != nil {
		return Checkpoint{}, err
	}
	at := Checkpoint{
		ResourceVersion: strings.Clone(now.ResourceVersion()), Version: of.version, UID: of.uid,
		Cluster: uid, Endpoint: k.cluster.endpoint, Objects: now.Len(), Time: time.Now().UTC(),
	}
	saved := k.mu.saved
	if k.mu.of != of && saved != nil && (k.mu.of == nil || k.mu.of.version != of.version || k.mu.of.uid != of.uid) {
		saved = nil // of another generation, in another form perhaps
	}
	if blocks, ok := k.mu.view.(PersistedBlocks); ok {
		whole := saved == nil || blocks.Full()
		return at, blocks.SaveBlocks(at, whole, func(w BlockWriter) error {
			if whole {
				return writeBlocks(w, now)
			}
			return k.writeChanges(w, saved, now)
		})
	}
	return at, k.mu.view.Save(at, saved == nil, func(w PersistenceWriter) error {
		if saved == nil {
			return writeAll(w, now)
		}
		return k.writeChanges(w, saved, now)
	})
}

// claimLocked claims the view.
func (k *keeper) claimLocked() error {
	if k.mu.view != nil {
		return nil
	}
	view, err := k.View(k.key)
	if err != nil {
		return err
	}
	k.mu.view = view
	return nil
}

// note records what went wrong, if anything did.
func (k *keeper) note(err error) {
	if err == nil {
		return
	}
	k.told.Lock()
	defer k.told.Unlock()
	if k.told.status.Err == nil { // once, and not each minute
		k.informer.logError(err)
	}
	k.told.status.Err, k.told.status.Checkpoint = err, Checkpoint{}
}

func (k *keeper) report() PersistenceStatus {
	k.told.Lock()
	defer k.told.Unlock()
	return k.told.status
}

// past implements follow.Follower.Past.
func (k *keeper) past(p follow.Part, uid types.UID) informer.Past {
	if k.why != "" {
		return nil
	}
	k.told.Lock()
	defer k.told.Unlock()
	k.told.status.Resumed = false
	return &past{keeper: k, generation: p.Generation, version: p.Version, uid: uid}
}
