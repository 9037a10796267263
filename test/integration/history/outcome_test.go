package history_test

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// awaitAgreement unblocks all handlers, waits until all informers agree with the server, and checks the
// events of the handlers.
func (w *fixture) awaitAgreement() {
	w.Helper()
	for _, s := range w.subscribers {
		s.Unblock()
	}
	for _, f := range w.followers {
		harness.Eventually(w, func(ctx context.Context) error { return w.compare(ctx, f) })
		if f.handle == nil {
			harness.Eventually(w,
				func(context.Context) error { return f.incarnations.checkStatus(f.Status()) })
		}
	}
	for _, s := range w.subscribers {
		harness.Eventually(w, func(context.Context) error {
			if diff := cmp.Diff(s.follower.kind.expected(), s.LiveObjects()); diff != "" {
				return fmt.Errorf("%s (-written +received):\n%s", s.Name(), diff)
			}
			return nil
		})
		s.check(w)
	}
	for _, g := range w.incarnations {
		for _, line := range g.takeViolations() {
			w.Error(line)
		}
	}
	w.awaitProcessAgreement(w.process)
}

// compare compares the cache with the server's list, and the list with the written objects.
func (w *fixture) compare(ctx context.Context, f *follower) error {
	current := f.Status()
	if current.State != status.Synced || !f.HasSynced() {
		return fmt.Errorf("%s is synced: %v, with the status %+v, want Synced", f.name, f.HasSynced(), current)
	}
	list, err := w.listAndCompare(ctx, f.kind)
	if err != nil {
		return err
	}
	server, cached := map[string]any{}, map[string]any{}
	for _, o := range list {
		server[o.GetNamespace()+"/"+o.GetName()] = o.Object
	}
	for _, o := range f.GetStore().List() {
		u := o.(*unstructured.Unstructured)
		cached[u.GetNamespace()+"/"+u.GetName()] = u.Object
	}
	if diff := cmp.Diff(server, cached); diff != "" {
		return fmt.Errorf("%s (-server +cache):\n%s", f.name, diff)
	}
	return w.checkIncarnation(ctx, f.kind, f.name, current.UID)
}

// listAndCompare returns the cluster's objects of a type after comparing them with the written ones.
func (c *cluster) listAndCompare(ctx context.Context, k *kind) ([]*unstructured.Unstructured, error) {
	list, err := c.admin.Resource(k.gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	objects, listed := []*unstructured.Unstructured{}, map[string]harness.WitnessedObject{}
	for n := range list.Items {
		o := &list.Items[n]
		objects = append(objects, o)
		value, _, _ := unstructured.NestedInt64(o.Object, "spec", "value")
		listed[o.GetNamespace()+"/"+o.GetName()] = harness.WitnessedObject{UID: o.GetUID(), Value: value}
	}
	if diff := cmp.Diff(k.expected(), listed); diff != "" {
		return nil, fmt.Errorf("%s on the server (-written +listed):\n%s", k.name, diff)
	}
	return objects, nil
}

// checkIncarnation returns an error unless an informer follows the current definition.
func (c *cluster) checkIncarnation(ctx context.Context, k *kind, informer string, uid types.UID) error {
	definition, err := c.admin.Resource(crd.GVR).Get(ctx, k.definition.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if uid != definition.GetUID() {
		return fmt.Errorf("%s follows the definition %s, the server has %s", informer, uid,
			definition.GetUID())
	}
	return nil
}

// expected returns the existing objects of a type.
func (k *kind) expected() map[string]harness.WitnessedObject {
	all := map[string]harness.WitnessedObject{}
	for key, o := range k.live {
		all[key] = harness.WitnessedObject{UID: o.uid, Value: o.value}
	}
	return all
}
