package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// past is what an earlier process kept, as a generation of the informer sees it: a version of a type whose
// CRD has a UID.
type past struct {
	*keeper
	generation int
	version    string
	uid        types.UID
	// several says that namespaces are read one by one.
	several bool
	// verified says that what is kept is known to be of this cluster.
	verified atomic.Bool
	// at is of what was recalled; nil: nothing was.
	at *persistence.Checkpoint
	// passedOn says that Recall has returned it: what comes later than the disk is waited for, nobody shows.
	passedOn atomic.Bool
}

// Recall implements informer.Past. Before the server has answered, what is kept counts if it is of the same
// address; after that, the cluster has to be the same.
func (p *past) Recall(ctx context.Context, answered bool) *informer.Kept {
	var found struct {
		kept *informer.Kept
		err  error
	}
	err := p.do(ctx, func() { found.kept, found.err = p.recall(ctx, answered) })
	if err == nil {
		err = found.err
	}
	if err != nil && ctx.Err() == nil {
		p.note(fmt.Errorf("recalling %s: %w", formatGVR(p.informer.gvr), err))
	}
	if err != nil {
		return nil
	}
	p.passedOn.Store(found.kept != nil)
	return found.kept
}

func (p *past) recall(ctx context.Context, answered bool) (*informer.Kept, error) {
	if answered && p.passedOn.Load() { // it is shown already
		uid, err := p.cluster.id(ctx, time.Now(), sameCluster)
		if err != nil || !p.cluster.is(*p.at, uid) {
			return nil, err
		}
		p.verified.Store(true)
		return &informer.Kept{ResourceVersion: p.at.ResourceVersion}, nil
	}
	var uid types.UID
	var unknown error
	// also where nothing is kept: what follows is of this cluster, or of another one when it is saved
	if answered {
		uid, unknown = p.cluster.id(ctx, time.Now(), sameCluster)
	}
	if err := p.claimLocked(); err != nil {
		return nil, err
	}
	at, ok, err := p.mine.view.Checkpoint()
	if err != nil || !ok || !p.fits(at) {
		return nil, err
	}
	switch {
	case unknown != nil:
		return nil, unknown
	case answered && !p.cluster.is(at, uid), !answered && !p.cluster.mayBe(at):
		return nil, nil
	}
	items, err := p.load(at)
	if err != nil {
		return nil, err
	}
	kept := &informer.Kept{Items: items, ResourceVersion: at.ResourceVersion}
	if at.Namespaces != "" {
		if kept.Namespaces, err = parseVersions(at.Namespaces); err != nil {
			return nil, err
		}
	}
	p.at = &at
	p.verified.Store(answered)
	return kept, nil
}

// fits reports whether a checkpoint is of what the generation follows. A UID that is not known is no
// difference: the server does not have the history of a type that was deleted and made again. From what was
// read at once, each namespace can be gone on from.
func (p *past) fits(at persistence.Checkpoint) bool {
	return (at.Namespaces == "" || p.several) && at.Version == p.version &&
		(at.UID == p.uid || at.UID == "" || p.uid == "")
}

var errCount = errors.New("what is kept is not complete")

// load reads the objects.
func (p *past) load(at persistence.Checkpoint) (items []informer.Item, err error) {
	if blocks, ok := p.mine.view.(persistence.BlockView); ok {
		items, err = p.loadBlocks(blocks, at)
	} else {
		items, err = p.loadAll(at)
	}
	if err == nil && len(items) != at.Objects {
		err = errCount
	}
	return items, err
}

func (p *past) loadAll(at persistence.Checkpoint) ([]informer.Item, error) {
	form := p.informer.core.Form()
	items := make([]store.Item, 0, at.Objects)
	err := p.mine.view.Load(func(json []byte) error {
		object, err := form.Packer().Pack(json)
		if err != nil {
			return err
		}
		items = append(items, form.Listed(form.Item(object)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

func (p *past) loadBlocks(view persistence.BlockView, at persistence.Checkpoint) ([]informer.Item, error) {
	form := p.informer.core.Form()
	items := make([]store.Item, 0, at.Objects)
	changed := map[string]*packed.Object{}
	err := view.LoadBlocks(func(key string, json []byte) error {
		if json == nil {
			changed[key] = nil
			return nil
		}
		object, err := form.Packer().Pack(json)
		changed[key] = object
		return err
	}, func(head []byte, bodies func() ([]byte, error), size int) error {
		objects, err := packed.ReadBlock(head, bodies, size)
		for _, o := range objects {
			if _, other := changed[o.Key()]; !other {
				items = append(items, form.Listed(form.Item(o)))
			}
		}
		return err
	})
	if err != nil { // what waits for a failed disk may go on for a moment
		return nil, err
	}
	for _, object := range changed {
		if object != nil {
			items = append(items, form.Listed(form.Item(object)))
		}
	}
	return items, nil
}

// Shows implements informer.Past.
func (p *past) Shows(shows bool) {
	p.informer.health.Resuming(p.generation, shows)
	if !shows && p.several { // some namespaces, of which the others have been confirmed
		return
	}
	var saved *keptContent
	// Somebody else may have written to it, or it is not all of what is kept.
	if c := p.informer.core.Checkpoint(); c.Resuming && c.Now.Len() == p.at.Objects {
		saved = &keptContent{c.Now, c.Namespaces}
	}
	// Where the disk holds that up, the next save is a whole one.
	_ = p.do(context.Background(), func() { p.mine.saved, p.mine.of = saved, p })
}

// Confirmed implements informer.Past.
func (p *past) Confirmed() {
	p.told.Lock()
	defer p.told.Unlock()
	p.told.status.Resumed = true
	p.told.status.Checkpoint = *p.at
}

func (i *Informer) logError(err error) {
	if i.source.logger != nil {
		utilruntime.HandleErrorWithLogger(*i.source.logger, err, "What the informer holds is not kept")
		return
	}
	utilruntime.HandleError(err)
}
