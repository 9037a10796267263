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

// customTypes has the custom types of a factory that follows CRDs by itself. Each informer follows only the
// CRD of its type, with an informer that the factory owns, and only while it runs.
type customTypes struct {
	factory *Factory

	mu         sync.Mutex
	registries map[schema.GroupResource]*follow.TypeRegistry
}

// registry returns the registry for a type; nil if the type has no CRD.
func (c *customTypes) registry(gvr schema.GroupVersionResource) *follow.TypeRegistry {
	if _, isBuiltin := naming.FindBuiltin(gvr.Group, "", gvr.Resource); c == nil || isBuiltin ||
		gvr.Group == crdGVR.Group {
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

// definition returns the factory's informer of the CRD of a type.
func (c *customTypes) definition(gr schema.GroupResource) (*Handle, error) {
	options := ResourceOptions{
		Namespaces: AllNamespaces(), Indexers: byNamespace,
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, gr.String()),
		Keep: Keep{Paths: []string{".spec.scope", ".spec.names.kind", ".spec.versions[*].name",
			".spec.versions[*].served", ".status.conditions"}},
		Persist: new(false),
	}
	key := entryKeyOf(crdGVR, options)
	key.ownedByFactory = true
	return c.factory.findOrMake(acquireRequest{key: key, options: options})
}

// probePeriod is the time between requests for a type that has no CRD and was not served.
const probePeriod = 30 * time.Second

// follow reports the type to its registry until ctx ends. A type without a CRD exists if the server answers a
// list, as for an aggregated API. If CRDs cannot be read, follow assumes that the type exists, and returns.
func (c *customTypes) follow(ctx context.Context, gvr schema.GroupVersionResource) {
	registry := c.registry(gvr)
	h, err := c.definition(gvr.GroupResource())
	if err != nil {
		return // the factory is shut down
	}
	defer h.Release()
	i := h.Informer()
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{})
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		case <-ctx.Done():
		}
	}
	registration, err := i.AddEventHandler(MetadataOnly(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, _ any) { notify(nil) }, DeleteFunc: notify}))
	defer func() {
		cancel() // a call of the handler returns
		_ = i.RemoveEventHandler(registration)
	}()
	assumed := typesource.Type{GroupResource: gvr.GroupResource(), Namespaced: true, Established: true,
		Versions: []string{gvr.Version}}
	hadDefinition := false
	for err == nil { // it fails after a shutdown
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
		case <-changed:
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
