package dynamicinformer

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/naming"
)

// followsCRDs is false in tests that count requests.
var followsCRDs = true

// customTypes has the custom types of a factory that follows CRDs by itself. The CRDs of the first types have
// informers of their own, which run while an informer of the type runs. Later ones share an informer.
type customTypes struct {
	factory *Factory
	changes sync.Map // from the name of a CRD to a chan struct{}, which its next event closes

	mu         sync.Mutex
	registries map[schema.GroupResource]*follow.TypeRegistry
	all        *Handle // the informer of all CRDs, from its first use until Shutdown
}

// ownDefinitions is the number of types whose CRDs have informers of their own.
const ownDefinitions = 8

// registry returns the registry for a type; nil if the type has no CRD.
func (c *customTypes) registry(gvr schema.GroupVersionResource) *follow.TypeRegistry {
	if _, isBuiltin := naming.FindBuiltin(gvr.Group, "", gvr.Resource); c == nil || isBuiltin {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.registries[gvr.GroupResource()]
	if r == nil {
		r = follow.NewTypeRegistry(func() {}, func(error) {})
		c.registries[gvr.GroupResource()] = r
	}
	return r
}

var crdGVR = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// isDefinition reports whether the factory itself follows a CRD.
func (k entryKey) isDefinition() bool { return k.ownedByFactory && k.gvr == crdGVR }

// definition returns the factory's informer for the CRD of a type, and a function that ends its use.
func (c *customTypes) definition(gr schema.GroupResource) (*Informer, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	options := ResourceOptions{
		Namespaces: AllNamespaces(), Indexers: byNamespace,
		Keep: Keep{Paths: []string{".spec.scope", ".spec.names.kind", ".spec.versions[*].name",
			".spec.versions[*].served", ".status.conditions"}},
		Persist: new(false),
	}
	isShared := len(c.registries) > ownDefinitions
	if isShared && c.all != nil {
		return c.all.Informer(), func() {}, nil
	}
	if !isShared {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, gr.String())
	}
	key := entryKeyOf(crdGVR, options)
	key.ownedByFactory = true
	h, err := c.factory.findOrMake(acquireRequest{key: key, options: options})
	if err != nil {
		return nil, nil, err
	}
	i := h.Informer()
	registration, err := i.AddEventHandler(MetadataOnly(cache.ResourceEventHandlerFuncs{
		AddFunc: c.notify, UpdateFunc: func(_, object any) { c.notify(object) }, DeleteFunc: c.notify}))
	if isShared {
		c.all = h
		return i, func() {}, err
	}
	return i, func() { _ = i.RemoveEventHandler(registration); h.Release() }, err
}

func (c *customTypes) notify(object any) {
	name, _ := cache.DeletionHandlingObjectToName(object)
	if changed, ok := c.changes.LoadAndDelete(name.Name); ok {
		close(changed.(chan struct{}))
	}
}

// probePeriod is the time between requests for a type that has no CRD and was not served.
const probePeriod = 30 * time.Second

// follow reports the type to its registry until ctx ends. A type without a CRD exists if the server answers a
// list, as for an aggregated API. If CRDs cannot be read, follow assumes that the type exists, and returns.
func (c *customTypes) follow(ctx context.Context, gvr schema.GroupVersionResource) {
	registry := c.registry(gvr)
	i, release, err := c.definition(gvr.GroupResource())
	if err != nil {
		return // the factory is shut down
	}
	defer release()
	assumed := typesource.Type{GroupResource: gvr.GroupResource(), Namespaced: true, Established: true,
		Versions: []string{gvr.Version}}
	hadDefinition := false
	for {
		changed, _ := c.changes.LoadOrStore(gvr.GroupResource().String(), make(chan struct{}))
		current, statusChanged := i.StatusChange()
		object, exists, _ := i.GetStore().GetByKey(gvr.GroupResource().String())
		var probe <-chan time.Time
		switch {
		case i.HasSynced() && exists:
			hadDefinition = true
			registry.SetType(customType(gvr.GroupResource(), object.(*unstructured.Unstructured)))
			registry.SetComplete()
		case i.HasSynced() && hadDefinition:
			registry.RemoveType(gvr.GroupResource(), true)
		case i.HasSynced():
			_, err := c.factory.deps.Client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
			if apierrors.IsNotFound(err) {
				probe = time.After(probePeriod)
			} else {
				registry.SetType(assumed)
			}
			registry.SetComplete()
		case current.Reason == status.ReasonForbidden, current.Reason == status.ReasonNotFound:
			registry.SetType(assumed)
			registry.SetComplete()
			return
		}
		select {
		case <-changed.(chan struct{}):
		case <-statusChanged:
		case <-probe:
		case <-ctx.Done():
			return
		}
	}
}

// customType returns the type of a CRD.
func customType(gr schema.GroupResource, definition *unstructured.Unstructured) typesource.Type {
	t := typesource.Type{GroupResource: gr, UID: definition.GetUID(),
		Terminating: definition.GetDeletionTimestamp() != nil}
	t.Kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
	t.Namespaced = scope == "Namespaced"
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); served {
			t.Versions = append(t.Versions, name)
		}
	}
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		t.Established = t.Established || condition["type"] == "Established" && condition["status"] == "True"
	}
	return t
}
