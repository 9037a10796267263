package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
)

// handoverTimeout bounds the time during which MoveHandlers holds back events.
const handoverTimeout = 15 * time.Second

// HandlerMove moves event handlers from some informers of a type to others: see MoveHandlers.
type HandlerMove struct {
	// From are the informers that the handlers were added to. To are the informers that replace them, which
	// may include some of From. No two of From, and no two of To, may select the same object.
	From, To []*Informer
	// Owner returns the index in To of the informer for the objects of a namespace, and any index if none
	// selects them. It is required if To has several informers.
	Owner func(namespace string) int
	// Handlers has the registrations of each handler: one with each informer of From, in order. MoveHandlers
	// replaces them, with one for each informer of To, or of From if it fails.
	Handlers [][]cache.ResourceEventHandlerRegistration
}

// MoveHandlers moves event handlers to informers with other options, as if the informers of From had relisted
// with these options. Each handler first receives the events that are queued for it, then an addition,
// update or deletion (cache.DeletedFinalStateUnknown) for each object that differs in its resource version,
// and then the events of To. No event is missed, repeated or reordered (TestMoveHandlers).
//
// While MoveHandlers runs, it holds back new events, until the informers of To have reached the resource
// versions of From. It waits up to 15 seconds, and does not wait for an informer of From without objects. The
// move fails if the type is no longer served although its CRD exists, because its objects may still exist.
// After the wait it calls ready and moves the handlers. From then on, read from To. It does not wait for
// handlers, so a handler can call it. The caller must not add or remove these handlers meanwhile.
//
// If the wait fails, MoveHandlers returns the error of WaitForVersion without calling ready, and the handlers
// continue with the informers of From (TestMoveHandlersFails). It returns ErrStopped if one in To stops.
func MoveHandlers(ctx context.Context, ready func(), moves ...*HandlerMove) error {
	ctx, cancel := context.WithTimeoutCause(ctx, handoverTimeout,
		errors.New("the new informers are not as recent as the old ones"))
	defer cancel()
	for _, m := range moves {
		for _, i := range slices.Concat(m.From, m.To) {
			if err := i.checkStored(); err != nil {
				return fmt.Errorf("dynamicinformer: move handlers: %w", err)
			}
		}
	}
	handovers := make([]*handover, len(moves))
	for k, m := range moves {
		handovers[k] = m.detach()
		defer handovers[k].recorder.stop()
	}
	var failure error
	for _, h := range handovers {
		failure = errors.Join(failure, h.awaitVersions(ctx))
	}
	if failure == nil {
		ready()
	}
	for _, h := range handovers {
		if failure == nil {
			h.attachErr = h.attach(h.To, func(k int, key string) bool { return h.ownerOf(key) == k }, nil)
		} else {
			h.attachErr = h.attach(h.From, func(int, string) bool { return true }, h.detached)
		}
	}
	for _, h := range handovers {
		failure = errors.Join(failure, h.attachErr)
	}
	if failure != nil {
		return fmt.Errorf("dynamicinformer: move handlers: %w", failure)
	}
	return nil
}

// handover is a HandlerMove with detached handlers.
type handover struct {
	*HandlerMove
	detached  []*informer.DetachedContent // of From
	previous  [][]*delivery.Registration
	recorder  *removalRecorder // of the shard of To, if any
	attachErr error
}

func (m *HandlerMove) detach() *handover {
	h := &handover{HandlerMove: m}
	if k := slices.IndexFunc(m.To, func(i *Informer) bool { return i.Shard() != nil }); k >= 0 {
		h.recorder = m.To[k].Shard().recordRemovals()
	}
	byInformer := make([][]*delivery.Registration, len(m.From))
	for _, handles := range m.Handlers {
		var registrations []*delivery.Registration
		for k, handle := range handles {
			if r, ok := handle.(*delivery.Registration); ok {
				registrations, byInformer[k] = append(registrations, r), append(byInformer[k], r)
			}
		}
		h.previous = append(h.previous, registrations)
	}
	for k, i := range m.From {
		h.detached = append(h.detached, i.core.Detach(byInformer[k]))
	}
	return h
}

// awaitVersions waits until the informers of To are as recent as the informers of From.
func (h *handover) awaitVersions(ctx context.Context) error {
	for k, d := range h.detached {
		for _, i := range h.To {
			for {
				err := awaitVersion(ctx, i, d)
				if err == nil {
					break
				}
				changed, err := h.awaitDeletion(k, err)
				if err != nil {
					return err
				}
				if changed == nil {
					break
				}
				select {
				case <-changed:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
	}
	return nil
}

// awaitVersion waits until an informer is as recent as detached content.
func awaitVersion(ctx context.Context, i *Informer, d *informer.DetachedContent) error {
	if d.Synced && d.Version != "" {
		if i.Shard() != nil {
			if err := i.WaitForShard(ctx); err != nil {
				return err
			}
		}
		if i.options.Selectors != nil {
			if err := i.WaitForSelectors(ctx); err != nil {
				return err
			}
		}
		if err := i.WaitForVersion(ctx, d.Version); !errors.Is(err, ErrOpaqueVersion) {
			return err
		}
	}
	if d.Len() == 0 {
		return nil
	}
	return i.WaitForSync(ctx)
}

// awaitDeletion returns nil values if an informer of To has no objects, because failure says that its type is
// not served, and the objects of informer k of From are deleted, too. It returns a channel that is closed
// when that may have changed, or the failure if the objects may exist.
func (h *handover) awaitDeletion(k int, failure error) (changed <-chan struct{}, err error) {
	var notSynced *NotSyncedError
	if !errors.As(failure, &notSynced) || !notSynced.NotSynced[0].Reason.Absent() {
		return nil, failure
	}
	from, changed := h.From[k].StatusChange()
	switch {
	case h.detached[k].Len() == 0, from.State == status.Pending && !from.Suspended:
		return nil, nil
	case from.Suspended, from.State == status.Stopped:
		return nil, failure
	}
	return changed, nil
}

// attach continues the handlers at some informers. owns reports whether informer k is responsible for a key.
// If perInformer is set, informer k continues only the handlers in perInformer[k]. Otherwise each
// informer continues all detached handlers.
func (h *handover) attach(to []*Informer, owns func(k int, key string) bool,
	perInformer []*informer.DetachedContent) error {
	registrations := make([][]cache.ResourceEventHandlerRegistration, len(h.previous))
	h.Handlers = registrations
	for k, i := range to {
		state := informer.Handover{From: h.detached, LeftShard: h.leftShard, Regained: h.regained,
			Owns: func(key string) bool { return owns(k, key) }}
		if perInformer != nil {
			state.From = perInformer[k : k+1]
		}
		attached, err := i.core.Attach(state, h.previous)
		if err != nil {
			return err
		}
		for n, r := range attached {
			registrations[n] = append(registrations[n], r)
		}
	}
	return nil
}

func (h *handover) ownerOf(key string) int {
	if len(h.To) == 1 {
		return 0
	}
	namespace, _ := naming.SplitKey(key)
	return h.Owner(namespace)
}

// leftShard reports whether a stored object has left the shard.
func (h *handover) leftShard(item any) bool {
	s := h.recorder
	return s != nil && (!s.currentRanges().Has(s.key, item) || s.removed().Has(s.key, item))
}

// regained reports whether a stored object has left the shard since the start of the recorder, and returned.
func (h *handover) regained(item any) bool {
	s := h.recorder
	return s != nil && s.removed().Has(s.key, item) && s.currentRanges().Has(s.key, item)
}
