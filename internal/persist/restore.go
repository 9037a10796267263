package persist

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/packed"
)

// restorer loads the content that an earlier process persisted for one incarnation of the informer.
type restorer struct {
	*Persister
	partition follow.PartitionSpec
	uid       types.UID
	// verified is set once the stored content is known to be of this cluster.
	verified atomic.Bool
	// restored is the checkpoint of the loaded content; nil if none was loaded.
	restored *persistence.Checkpoint
	// itemsReturned is set once Load has returned the content. Later content is ignored.
	itemsReturned atomic.Bool
}

// Restore returns the persisted content for an incarnation, for Follower.RestoredState.
func (p *Persister) Restore(partition follow.PartitionSpec, uid types.UID) informer.PersistedState {
	if p.disabledReason != "" {
		return nil
	}
	p.reported.Lock()
	defer p.reported.Unlock()
	p.reported.status.Resumed = false
	return &restorer{Persister: p, partition: partition, uid: uid}
}

// sameType reports whether two incarnations have the same version and UID, so that changes can be saved.
func (r *restorer) sameType(other *restorer) bool {
	return r == other || r != nil && r.partition.Version == other.partition.Version && r.uid == other.uid
}

// Load implements informer.PersistedState. Before the server has responded, it accepts content from the
// same endpoint, and after that only content from the same cluster.
func (r *restorer) Load(ctx context.Context, responded bool) *informer.RestoredContent {
	var result struct {
		restored *informer.RestoredContent
		err      error
	}
	err := r.withToken(ctx, func(ctx context.Context) {
		result.restored, result.err = r.load(ctx, responded)
	})
	if err == nil {
		err = result.err
	}
	if err != nil && ctx.Err() == nil {
		r.recordFailure(r.errorf("restore", err))
	}
	if err != nil {
		return nil
	}
	r.itemsReturned.Store(result.restored != nil)
	return result.restored
}

func (r *restorer) load(ctx context.Context, responded bool) (*informer.RestoredContent, error) {
	if responded && r.itemsReturned.Load() { // the cache shows it already
		uid, err := r.cluster.verifiedUID(ctx, time.Now(), clusterTolerance)
		if err != nil || !r.cluster.matchesCheckpoint(*r.restored, uid) {
			return nil, err
		}
		r.verified.Store(true)
		return &informer.RestoredContent{}, nil
	}
	var uid types.UID
	var identifyErr error
	// Identify the cluster even if no content is stored, so that a later save can notice a change.
	if responded {
		uid, identifyErr = r.cluster.verifiedUID(ctx, time.Now(), clusterTolerance)
	}
	if err := r.openLocked(ctx); err != nil {
		return nil, err
	}
	var restored *informer.RestoredContent
	err := r.state.content.Load(ctx, func(at persistence.Checkpoint, load persistence.LoadFunc) (err error) {
		switch matchesType := r.matchesType(at); {
		case matchesType && identifyErr != nil:
			return identifyErr
		case !responded && !(matchesType && r.cluster.matchesEndpoint(at)):
			return nil // a response may show that it is another cluster
		case !matchesType || responded && !r.cluster.matchesCheckpoint(at, uid):
			klog.FromContext(ctx).Info("Persisted objects are of another cluster or definition, listing them", "type",
				naming.FormatType(r.source.GVR), "persisted", at, "version", r.partition.Version, "uid", r.uid, "cluster", uid)
			return nil
		}
		restored, err = r.loadItems(at, load)
		return err
	})
	if err != nil || restored == nil {
		return nil, err
	}
	r.verified.Store(responded)
	return restored, nil
}

// matchesType reports whether a checkpoint has the version and the CRD of the incarnation. An unknown UID
// matches, because the server has no history from before a CRD was recreated. Watches of single namespaces
// can continue from the checkpoint of one watch of all namespaces, but not the reverse.
func (r *restorer) matchesType(checkpoint persistence.Checkpoint) bool {
	p := r.partition
	return (checkpoint.Namespaces == "" || p.PerNamespace) && checkpoint.APIVersion == p.Version &&
		(checkpoint.UID == r.uid || checkpoint.UID == "" || r.uid == "")
}

// maxInitialItems limits the memory that the number in a checkpoint costs, which can be wrong.
const maxInitialItems = 100_000

func (r *restorer) loadItems(at persistence.Checkpoint,
	load persistence.LoadFunc) (restored *informer.RestoredContent, err error) {
	format := r.source.Cache.Store().Format()
	items := make([]informer.Item, 0, max(0, min(at.Objects, maxInitialItems)))
	add := func(object *packed.Object) { items = append(items, format.ForList(format.Item(object))) }
	if err = packed.ReadRecords(load, format.Packer(), add); err != nil {
		return nil, err
	}
	if len(items) != at.Objects {
		return nil, errors.New("the stored content is incomplete")
	}
	versions := map[string]string{"": at.ResourceVersion}
	if at.Namespaces != "" {
		versions, err = labels.ConvertSelectorToLabelsMap(at.Namespaces)
	}
	r.restored = &at
	return &informer.RestoredContent{Items: items, Versions: versions}, err
}

func (r *restorer) OnServingChange(unconfirmed bool) {
	r.source.Health.SetResuming(r.partition.Incarnation, unconfirmed)
	if !unconfirmed && r.partition.PerNamespace { // for one namespace; the others were confirmed
		return
	}
	var saved *persistedSnapshot
	// A user may have written to the cache, or it may have only a part of the stored content.
	persistable := r.source.Cache.PersistableContent()
	if persistable.Resuming && persistable.Snapshot.Len() == r.restored.Objects {
		saved = &persistedSnapshot{persistable.Snapshot, persistable.Namespaces}
	}
	// If this times out, the next save is a complete one.
	_ = r.withToken(context.Background(), func(context.Context) {
		r.state.saved, r.state.restorer = saved, r
	})
}

func (r *restorer) OnConfirmed() {
	r.reported.Lock()
	defer r.reported.Unlock()
	r.reported.status.Resumed = true
	r.reported.status.Checkpoint = *r.restored
}
