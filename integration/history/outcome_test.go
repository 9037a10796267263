package history_test

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/integration/internal/witness"
)

// settle lets everybody go on, and waits until all agree with the server.
func (w *world) settle() {
	w.Helper()
	for _, s := range w.subscribers {
		s.GoOn()
	}
	for _, f := range w.followers {
		harness.Eventually(w, func(ctx context.Context) error { return w.agrees(ctx, f) })
		if f.handle == nil {
			harness.Eventually(w, func(context.Context) error { return f.generations.agrees(f) })
		}
	}
	for _, s := range w.subscribers {
		harness.Eventually(w, func(context.Context) error {
			if diff := cmp.Diff(s.follower.kind.expected(), s.Live()); diff != "" {
				return fmt.Errorf("%s (-written +told):\n%s", s.Name(), diff)
			}
			return nil
		})
		s.check(w)
	}
	for _, g := range w.generations {
		g.report(w)
	}
}

// agrees compares what is in the cache with what the server lists, and that with what was written. What is to be kept on disk
// is kept.
func (w *world) agrees(ctx context.Context, f *follower) error {
	status := f.Status()
	if status.State != dynamicinformer.StateSynced || !f.HasSynced() {
		return fmt.Errorf("%s is synced: %v, with the status %+v", f.name, f.HasSynced(), status)
	}
	if kept := f.Persistence(); kept.Kept && (kept.Err != nil || kept.Checkpoint.ResourceVersion == "") { // for now: it is tried again
		return fmt.Errorf("%s is not kept: %+v", f.name, kept)
	}
	list, err := w.admin.Resource(f.kind.gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	server, cached := map[string]any{}, map[string]any{}
	expected := map[string]witness.Object{}
	for _, o := range list.Items {
		server[o.GetNamespace()+"/"+o.GetName()] = o.Object
		value, _, _ := unstructured.NestedInt64(o.Object, "spec", "value")
		expected[o.GetNamespace()+"/"+o.GetName()] = witness.Object{UID: o.GetUID(), Value: value}
	}
	for _, o := range f.GetStore().List() {
		u := o.(*unstructured.Unstructured)
		cached[u.GetNamespace()+"/"+u.GetName()] = u.Object
	}
	if diff := cmp.Diff(f.kind.expected(), expected); diff != "" {
		return fmt.Errorf("%s on the server (-written +listed):\n%s", f.name, diff)
	}
	if diff := cmp.Diff(server, cached); diff != "" {
		return fmt.Errorf("%s (-server +cache):\n%s", f.name, diff)
	}
	definition, err := w.admin.Resource(crd.GVR).Get(ctx, f.kind.definition.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if status.UID != definition.GetUID() {
		return fmt.Errorf("%s follows the definition %s, the server has %s", f.name, status.UID, definition.GetUID())
	}
	return nil
}

// expected is what there is of a type.
func (k *kind) expected() map[string]witness.Object {
	all := map[string]witness.Object{}
	for key, o := range k.live {
		all[key] = witness.Object{UID: o.uid, Value: o.value}
	}
	return all
}
