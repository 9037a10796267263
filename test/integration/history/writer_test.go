package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// cluster is a server and the record of writes to it.
type cluster struct {
	*testing.T
	ctx        context.Context
	config     func() *rest.Config
	admin      dynamic.Interface
	namespaces []string
	kinds      []*kind
	// recreated counts the definitions that were created again.
	recreated int
}

// newCluster installs the types.
func newCluster(t *testing.T, ctx context.Context, config func() *rest.Config, group string,
	namespaces []string) *cluster {
	t.Helper()
	admin, err := dynamic.NewForConfig(config())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, ctx: ctx, config: config, admin: admin, namespaces: namespaces}
	for _, name := range []string{"Widget", "Gadget", "Gizmo"} {
		k := newKind(group, name)
		c.kinds = append(c.kinds, k)
		c.install(k)
	}
	c.recreated = 0
	return c
}

// kind is a type that is deleted and created again with its definition. Its only writer knows all objects.
type kind struct {
	definition *unstructured.Unstructured
	gvr        schema.GroupVersionResource
	name       string
	installed  bool
	// live has the existing objects by key, byUID all objects that ever existed.
	live  map[string]*objectState
	byUID map[types.UID]*objectState
}

// objectState is the record of an object's writes.
type objectState struct {
	key   string
	uid   types.UID
	value int64 // the last value; values increase
}

func newKind(group, name string) *kind {
	definition := harness.NewCRD(group, name)
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	return &kind{
		definition: definition, name: name, gvr: schema.GroupVersionResource{Group: group, Version: "v1",
			Resource: plural},
		live: map[string]*objectState{}, byUID: map[types.UID]*objectState{},
	}
}

// write creates, updates or deletes an object of an installed type.
func (c *cluster) write(r *rand.Rand) {
	c.Helper()
	k := c.kinds[r.IntN(len(c.kinds))]
	namespace, name := c.namespaces[r.IntN(len(c.namespaces))], fmt.Sprintf("o%d", r.IntN(6))
	remove := r.IntN(5) == 0
	if !k.installed {
		return
	}
	objects := c.admin.Resource(k.gvr).Namespace(namespace)
	switch o := k.live[namespace+"/"+name]; {
	case o == nil:
		c.create(k, objects, namespace, name)
	case remove:
		if err := objects.Delete(c.ctx, name, metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
		delete(k.live, o.key)
	default:
		o.value++
		patch := fmt.Appendf(nil, `{"spec":{"value":%d}}`, o.value)
		if _, err := objects.Patch(c.ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			c.Fatal(err)
		}
	}
}

// create creates an object and retries while the server does not know that the type is installed again.
func (c *cluster) create(k *kind, objects dynamic.ResourceInterface, namespace, name string) {
	c.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": int64(1)}}}
	object.SetGroupVersionKind(k.gvr.GroupVersion().WithKind(k.name))
	object.SetName(name)
	o := &objectState{key: namespace + "/" + name, value: 1}
	harness.Eventually(c, func(ctx context.Context) error {
		created, err := objects.Create(ctx, object, metav1.CreateOptions{})
		if err == nil {
			o.uid = created.GetUID()
		}
		return err
	})
	k.live[o.key], k.byUID[o.uid] = o, o
}

// uninstall deletes a definition with its objects, and does not wait.
func (c *cluster) uninstall(k *kind) {
	c.Helper()
	if !k.installed {
		return
	}
	if err := c.admin.Resource(crd.GVR).Delete(c.ctx, k.definition.GetName(),
		metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	k.installed = false
	clear(k.live)
}

// install creates a definition as soon as its name is free.
func (c *cluster) install(k *kind) {
	c.Helper()
	if k.installed {
		return
	}
	harness.Eventually(c, func(ctx context.Context) error {
		_, err := c.admin.Resource(crd.GVR).Create(ctx, k.definition, metav1.CreateOptions{})
		return err
	})
	k.installed = true
	c.recreated++
}
