package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/readapi"
)

// typeBoard is what is known of the types of the cluster.
type typeBoard struct {
	mu      sync.Mutex
	types   map[schema.GroupResource]typesource.Type
	changed chan struct{} // closed, and replaced, when types change
}

func newTypeBoard() *typeBoard {
	return &typeBoard{types: map[schema.GroupResource]typesource.Type{}, changed: make(chan struct{})}
}

// notifyLocked tells who waits for a type.
func (b *typeBoard) notifyLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// SetType implements typesource.Listener.
func (b *typeBoard) SetType(t typesource.Type) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.types[t.GroupResource] = t
	b.notifyLocked()
}

// RemoveType implements typesource.Listener.
func (b *typeBoard) RemoveType(gr schema.GroupResource) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.types, gr)
	b.notifyLocked()
}

// SetUnknown implements typesource.Listener.
func (b *typeBoard) SetUnknown(map[schema.GroupVersion]error) {}

// SetComplete implements typesource.Listener.
func (b *typeBoard) SetComplete() {}

func (b *typeBoard) lookup(gr schema.GroupResource) (t typesource.Type, known bool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, known = b.types[gr]
	return t, known, b.changed
}

// redefiner ends the watches of a type whose definition changes, as a kube-apiserver does.
type redefiner struct{ *Server }

// OnAdd implements cache.ResourceEventHandler.
func (r redefiner) OnAdd(obj any, _ bool) { r.changed(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (r redefiner) OnUpdate(_, after any) { r.changed(after) }

// OnDelete implements cache.ResourceEventHandler.
func (r redefiner) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if k := r.keeperOf(obj); k != nil {
		k.redefine()
	}
}

// changed ends the watches of a type that has been served by another definition.
func (r redefiner) changed(obj any) {
	if k := r.keeperOf(obj); k != nil {
		k.redefineFrom(specOf(obj))
	}
}

// keeperOf returns what serves the type of a definition, or nil.
func (r redefiner) keeperOf(obj any) *kept {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil
	}
	return r.keeper(schema.ParseGroupResource(o.GetName()))
}

// specOf is the UID of a definition, and its spec as it is written; empty for what is none.
func specOf(obj any) string {
	o, ok := obj.(dynamicinformer.PackedObject)
	m, also := obj.(metav1.Object)
	if !ok || !also {
		return ""
	}
	var content struct {
		Spec json.RawMessage `json:"spec"`
	}
	if o.View(func(text []byte) error { return json.Unmarshal(text, &content) }) != nil {
		return ""
	}
	return string(m.GetUID()) + string(content.Spec)
}

// typeOf returns how a type is served, and the spec of its definition, if it has one; false while that is not
// known. It takes what the cluster tells by discovery, and for custom resources their definition.
func (s *Server) typeOf(gvr schema.GroupVersionResource) (t readapi.Type, spec string, ok bool) {
	known, ok, _ := s.types.lookup(gvr.GroupResource())
	definitions := s.definitions.Informer()
	if !ok || !definitions.HasSynced() {
		return t, "", false
	}
	stored, custom := definitions.Snapshot().Stored(gvr.GroupResource().String())
	switch {
	case !custom && known.UID != "":
		return t, "", false // the definition is gone, or has not come yet
	case custom:
		err := stored.(dynamicinformer.PackedObject).View(func(text []byte) (err error) {
			t, err = readapi.TypeOf(bytes.Clone(text))
			return err
		})
		t.Custom = true
		return t, specOf(stored), err == nil && t.Namespaced == known.Namespaced
	}
	return readapi.Type{
		Group:      gvr.Group,
		Names:      crd.Names{Plural: gvr.Resource, Kind: known.Kind, ListKind: known.Kind + "List"},
		Namespaced: known.Namespaced,
		Versions:   []readapi.Version{{Name: gvr.Version}},
	}, "", true
}

// WaitForSync waits until a type is served from the cache: it is kept, its informer has synced, and it is
// known how it is served, for which CustomResourceDefinitions have to be readable. The error is the context's
// cause, or says that the type is not kept, or not any more; it is an ErrStopped when its informer has
// stopped.
func (s *Server) WaitForSync(ctx context.Context, gr schema.GroupResource) error {
	for {
		k := s.keeper(gr)
		if k == nil {
			return fmt.Errorf("live: %s is not kept", gr)
		}
		_, _, types := s.types.lookup(gr)
		definitions, objects := s.definitions.Informer().History(), k.informer.History()
		if k.collection() != nil {
			return nil
		}
		select {
		case <-types:
		case <-definitions.Next:
		case <-objects.Next:
		case <-k.over:
			if s.keeper(gr) == k {
				return fmt.Errorf("live: the informer of %s: %w", gr, dynamicinformer.ErrStopped)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
