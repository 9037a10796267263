package persist

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/informer"
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
	// itemsReturned is set once Load has returned the content. Content that arrives after the timeout is
	// unused.
	itemsReturned atomic.Bool
}

// Restore returns the persisted content for an incarnation of the informer: see
// follow.Follower.RestoredState.
func (p *Persister) Restore(partition follow.PartitionSpec, uid types.UID) informer.PersistedState {
	if p.disabled != "" {
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

// Load implements informer.PersistedState. Before the server has responded, content of the same address is
// valid. After that, the cluster must be the same.
func (r *restorer) Load(ctx context.Context, responded bool) *informer.Restored {
	var found struct {
		restored *informer.Restored
		err      error
	}
	err := r.withToken(ctx, func(ctx context.Context) { found.restored, found.err = r.load(ctx, responded) })
	if err == nil {
		err = found.err
	}
	if err != nil && ctx.Err() == nil {
		r.recordFailure(r.errorf("restore", err))
	}
	if err != nil {
		return nil
	}
	r.itemsReturned.Store(found.restored != nil)
	return found.restored
}

func (r *restorer) load(ctx context.Context, responded bool) (*informer.Restored, error) {
	if responded && r.itemsReturned.Load() { // the cache shows it already
		uid, err := r.cluster.id(ctx, time.Now(), clusterTolerance)
		if err != nil || !r.cluster.matches(*r.restored, uid) {
			return nil, err
		}
		r.verified.Store(true)
		return &informer.Restored{ResourceVersion: r.restored.ResourceVersion}, nil
	}
	var uid types.UID
	var unknown error
	// Identify the cluster even if no content is stored, so that a later save can notice a change of the
	// cluster.
	if responded {
		uid, unknown = r.cluster.id(ctx, time.Now(), clusterTolerance)
	}
	if err := r.openLocked(ctx); err != nil {
		return nil, err
	}
	at, ok, err := r.state.view.Checkpoint(ctx)
	if err != nil || !ok || !r.matchesType(at) {
		return nil, err
	}
	switch {
	case unknown != nil:
		return nil, unknown
	case responded && !r.cluster.matches(at, uid), !responded && !r.cluster.matchesEndpoint(at):
		return nil, nil
	}
	items, err := r.loadItems(ctx, at)
	if err != nil {
		return nil, err
	}
	checkpointed := &informer.Restored{Items: items, ResourceVersion: at.ResourceVersion}
	if at.Namespaces != "" {
		if checkpointed.Namespaces, err = parseVersions(at.Namespaces); err != nil {
			return nil, err
		}
	}
	r.restored = &at
	r.verified.Store(responded)
	return checkpointed, nil
}

// matchesType reports whether a checkpoint has the version and the CRD of the incarnation. An unknown UID
// matches, because the server has no history from before a CRD was recreated. Watches of single namespaces
// can continue from the checkpoint of one watch of all namespaces, but not the reverse.
func (r *restorer) matchesType(checkpoint persistence.Checkpoint) bool {
	p := r.partition
	return (checkpoint.Namespaces == "" || p.PerNamespace) && checkpoint.APIVersion == p.Version &&
		(checkpoint.UID == r.uid || checkpoint.UID == "" || r.uid == "")
}

func (r *restorer) loadItems(ctx context.Context,
	checkpoint persistence.Checkpoint) ([]informer.Item, error) {
	format := r.source.Cache.Store().Format()
	items := make([]informer.Item, 0, checkpoint.Objects)
	add := func(object *packed.Object) { items = append(items, format.ForList(format.Item(object))) }
	var err error
	if blocks, ok := r.state.view.(persistence.BlockContent); ok {
		err = loadBlocks(ctx, blocks, format.Packer(), add)
	} else {
		err = r.state.view.Load(ctx, func(json []byte) error {
			object, err := format.Packer().Pack(json)
			if err == nil {
				add(object)
			}
			return err
		})
	}
	switch {
	case err != nil: // add may still be called: a backend can continue after a failure
		return nil, err
	case len(items) != checkpoint.Objects:
		return nil, errors.New("the stored content is incomplete")
	}
	return items, nil
}

func loadBlocks(ctx context.Context, view persistence.BlockContent, packer *packed.Packer,
	add func(*packed.Object)) error {
	changed := map[string]*packed.Object{}
	err := view.LoadBlocks(ctx, func(key string, json []byte) error {
		if json == nil {
			changed[key] = nil
			return nil
		}
		object, err := packer.Pack(json)
		changed[key] = object
		return err
	}, func(head []byte, bodies func() ([]byte, error), size int) error {
		objects, err := packed.ReadBlock(head, bodies, size)
		for _, o := range objects {
			if _, other := changed[o.Key()]; !other {
				add(o)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, object := range changed {
		if object != nil {
			add(object)
		}
	}
	return nil
}

func (r *restorer) OnServingChange(unconfirmed bool) {
	r.source.Health.SetResuming(r.partition.Incarnation, unconfirmed)
	if !unconfirmed && r.partition.PerNamespace { // some of the namespaces; the others have been confirmed
		return
	}
	var saved *persistedSnapshot
	// A user may have written to the cache, or it may have only a part of the stored content.
	if c := r.source.Cache.PersistableContent(); c.Resuming && c.Snapshot.Len() == r.restored.Objects {
		saved = &persistedSnapshot{c.Snapshot, c.Namespaces}
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
