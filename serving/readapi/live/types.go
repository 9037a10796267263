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
	"github.com/crdcache/crdcache/serving/readapi"
)

type typeRegistry struct {
	mu      sync.Mutex
	types   map[schema.GroupResource]typesource.Type
	changed chan struct{} // closed and replaced when types change
	// isComplete is set when all types are known.
	isComplete bool
}

func newTypeRegistry() *typeRegistry {
	return &typeRegistry{types: map[schema.GroupResource]typesource.Type{}, changed: make(chan struct{})}
}

func (r *typeRegistry) notifyLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *typeRegistry) SetType(t typesource.Type) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.types[t.GroupResource] = t
	r.notifyLocked()
}

func (r *typeRegistry) RemoveType(gr schema.GroupResource, _ bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.types, gr)
	r.notifyLocked()
}

func (r *typeRegistry) SetUnknown(map[schema.GroupVersion]error) {}

func (r *typeRegistry) SetComplete() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isComplete = true
	r.notifyLocked()
}

// mayDefine reports whether the server has CustomResourceDefinitions, as far as is known.
func (r *typeRegistry) mayDefine() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, hasDefinitions := r.types[crd.GVR.GroupResource()]
	return hasDefinitions || !r.isComplete
}

func (r *typeRegistry) lookup(gr schema.GroupResource) (t typesource.Type, known bool,
	changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, known = r.types[gr]
	return t, known, r.changed
}

// definitionHandler ends the watches of a type when its definition changes, as a kube-apiserver does.
type definitionHandler struct{ *Server }

func (d definitionHandler) OnAdd(obj any, _ bool) { d.onChange(obj) }
func (d definitionHandler) OnUpdate(_, after any) { d.onChange(after) }

func (d definitionHandler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if served := d.cacheOfDefinition(obj); served != nil {
		served.resetDefinition()
	}
}

func (d definitionHandler) onChange(obj any) {
	if served := d.cacheOfDefinition(obj); served != nil {
		served.resetIfChanged(specOf(obj))
	}
}

// cacheOfDefinition returns the cache of the type of a definition, or nil.
func (d definitionHandler) cacheOfDefinition(obj any) *typeCache {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil
	}
	return d.cacheOf(schema.ParseGroupResource(o.GetName()))
}

// specOf returns the UID and the JSON spec of a definition, or "" for other objects.
func specOf(obj any) string {
	o, ok := obj.(dynamicinformer.PackedObject)
	m, hasSpec := obj.(metav1.Object)
	if !ok || !hasSpec {
		return ""
	}
	var content struct {
		Spec json.RawMessage `json:"spec"`
	}
	if o.ReadJSON(func(text []byte) error { return json.Unmarshal(text, &content) }) != nil {
		return ""
	}
	return string(m.GetUID()) + string(content.Spec)
}

// typeOf returns how a type is served, and the spec of its definition, if it has one. It returns false
// while the type is unknown. It uses discovery and, for custom resources, their definition.
func (s *Server) typeOf(gvr schema.GroupVersionResource) (t readapi.Type, spec string, ok bool) {
	typ, ok, _ := s.types.lookup(gvr.GroupResource())
	definitions := s.definitions.Informer()
	if !ok || !definitions.HasSynced() && s.types.mayDefine() {
		return t, "", false
	}
	stored, custom := definitions.Snapshot().Stored(gvr.GroupResource().String())
	switch {
	case !custom && typ.UID != "":
		return t, "", false // the definition is deleted or not yet known
	case custom:
		t, err := definedType(stored)
		t.Custom = true
		return t, specOf(stored), err == nil && t.Namespaced == typ.Namespaced
	}
	return readapi.Type{
		Group:      gvr.Group,
		Names:      crd.Names{Plural: gvr.Resource, Kind: typ.Kind, ListKind: typ.Kind + "List"},
		Namespaced: typ.Namespaced,
		Versions:   []readapi.Version{{Name: gvr.Version}},
	}, "", true
}

// definedType returns the type that a cached CustomResourceDefinition defines.
func definedType(definition any) (t readapi.Type, err error) {
	err = definition.(dynamicinformer.PackedObject).ReadJSON(func(text []byte) (err error) {
		t, err = readapi.TypeOf(bytes.Clone(text))
		return err
	})
	return t, err
}

// WaitForSync blocks until a type is served from the cache: its informer has synced, and its definition is
// known. CustomResourceDefinitions must be readable if the server has them. The error is the context's cause,
// an error if the type is not served, or dynamicinformer.ErrStopped if its informer has stopped.
func (s *Server) WaitForSync(ctx context.Context, gr schema.GroupResource) error {
	for {
		served := s.cacheOf(gr)
		if served == nil {
			return fmt.Errorf("live: %s is not served from the cache: call AddType", gr)
		}
		_, _, types := s.types.lookup(gr)
		definitions, objects := s.definitions.Informer().History(), served.informer.History()
		if served.collection() != nil {
			return nil
		}
		select {
		case <-types:
		case <-definitions.Next:
		case <-objects.Next:
		case <-served.ended:
			if s.cacheOf(gr) == served {
				return fmt.Errorf("live: the informer of %s: %w", gr, dynamicinformer.ErrStopped)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
