package conformance

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// WithMirror returns informers that store objects, on top of informers that store only identities. The first
// handler rebuilds the objects from its events. Each handler receives the old states that it has rebuilt in
// place of identities, and the test fails if an identity is not the one of that state.
func WithMirror(newInformer NewInformerFunc) NewInformerFunc {
	return func(t testing.TB, setup Setup) cache.SharedIndexInformer {
		return &mirrored{SharedIndexInformer: newInformer(t, setup), t: t, content: newMirror()}
	}
}

type mirrored struct {
	cache.SharedIndexInformer
	t testing.TB
	// content is the mirror of the first handler.
	content  cache.Indexer
	handlers int
}

func newMirror() cache.Indexer {
	return cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// GetIndexer implements cache.SharedIndexInformer.
func (m *mirrored) GetIndexer() cache.Indexer { return m.content }

// AddEventHandlerWithOptions implements cache.SharedIndexInformer.
func (m *mirrored) AddEventHandlerWithOptions(handler cache.ResourceEventHandler,
	options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	content := newMirror()
	if m.handlers == 0 {
		content = m.content
	}
	m.handlers++
	return m.SharedIndexInformer.AddEventHandlerWithOptions(&mirror{m.t, handler, content}, options)
}

// mirror rebuilds the objects that it is notified of, and forwards the notifications.
type mirror struct {
	t       testing.TB
	handler cache.ResourceEventHandler
	content cache.Indexer
}

// OnAdd implements cache.ResourceEventHandler.
func (h *mirror) OnAdd(obj any, isInInitialList bool) {
	h.check(h.content.Add(obj))
	h.handler.OnAdd(obj, isInInitialList)
}

// OnUpdate implements cache.ResourceEventHandler.
func (h *mirror) OnUpdate(oldObj, newObj any) {
	before := h.stateOf(oldObj)
	h.check(h.content.Update(newObj))
	h.handler.OnUpdate(before, newObj)
}

// OnDelete implements cache.ResourceEventHandler.
func (h *mirror) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		lost.Obj = h.stateOf(lost.Obj)
		obj = lost
	}
	h.check(h.content.Delete(obj))
	h.handler.OnDelete(obj)
}

// stateOf returns the state that an identity stands in for.
func (h *mirror) stateOf(identity any) any {
	state, exists, err := h.content.Get(identity)
	h.check(err)
	if !exists {
		h.t.Errorf("the handler never received %v", identity)
		return identity
	}
	got, err := meta.Accessor(identity)
	h.check(err)
	want, err := meta.Accessor(state)
	h.check(err)
	if got.GetUID() != want.GetUID() || got.GetResourceVersion() != want.GetResourceVersion() {
		h.t.Errorf("the identity %v is not that of %v", identity, state)
	}
	return state
}

func (h *mirror) check(err error) {
	if err != nil {
		h.t.Error(err)
	}
}
