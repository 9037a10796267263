package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/integration/harness"
)

// kind is a type whose definition comes and goes. The one writer knows all that there is of it.
type kind struct {
	definition *unstructured.Unstructured
	gvr        schema.GroupVersionResource
	name       string
	installed  bool
	// live are the objects there are, by key; known are all there have been, by UID.
	live  map[string]*written
	known map[types.UID]*written
}

// written is what has been written of one object.
type written struct {
	key   string
	uid   types.UID
	value int64 // the last one; they rise
}

func newKind(group, name string) *kind {
	definition := harness.NewCRD(group, name)
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	return &kind{
		definition: definition, name: name, gvr: schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural},
		live: map[string]*written{}, known: map[types.UID]*written{},
	}
}

// write creates, changes or deletes an object of a type that is there.
func (w *world) write(r *rand.Rand) {
	w.Helper()
	k := w.kinds[r.IntN(len(w.kinds))]
	namespace, name := w.namespaces[r.IntN(len(w.namespaces))], fmt.Sprintf("o%d", r.IntN(6))
	remove := r.IntN(5) == 0
	if !k.installed {
		return
	}
	objects := w.admin.Resource(k.gvr).Namespace(namespace)
	switch o := k.live[namespace+"/"+name]; {
	case o == nil:
		w.create(k, objects, namespace, name)
	case remove:
		if err := objects.Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
		delete(k.live, o.key)
	default:
		o.value++
		patch := fmt.Appendf(nil, `{"spec":{"value":%d}}`, o.value)
		if _, err := objects.Patch(w.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// create creates an object, as soon as the server takes it: it may not know yet that the type is there again.
func (w *world) create(k *kind, objects dynamic.ResourceInterface, namespace, name string) {
	w.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": int64(1)}}}
	object.SetGroupVersionKind(k.gvr.GroupVersion().WithKind(k.name))
	object.SetName(name)
	o := &written{key: namespace + "/" + name, value: 1}
	harness.Eventually(w, func(ctx context.Context) error {
		created, err := objects.Create(ctx, object, metav1.CreateOptions{})
		if err == nil {
			o.uid = created.GetUID()
		}
		return err
	})
	k.live[o.key], k.known[o.uid] = o, o
}

// uninstall deletes a definition, and with it all objects, and does not wait for that.
func (w *world) uninstall(k *kind) {
	w.Helper()
	if !k.installed {
		return
	}
	if err := w.admin.Resource(crd.GVR).Delete(w.ctx, k.definition.GetName(), metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	k.installed = false
	clear(k.live)
}

// install creates a definition as soon as its name is free.
func (w *world) install(k *kind) {
	w.Helper()
	if k.installed {
		return
	}
	harness.Eventually(w, func(ctx context.Context) error {
		_, err := w.admin.Resource(crd.GVR).Create(ctx, k.definition, metav1.CreateOptions{})
		return err
	})
	k.installed = true
}
