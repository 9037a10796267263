package soak_test

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// patience limits every wait after the faults have ended. It is far longer than the longest pause between two
// attempts.
const patience = 5 * time.Minute

// agreementTimes has durations after the end of the faults: until all types agreed with the server and their
// status was healthy, and until the caches of the shared types agreed, for both libraries.
type agreementTimes struct{ All, Ours, Theirs time.Duration }

// awaitAgreement waits until all caches agree with the server, and then checks the handlers' events.
func (w *fixture) awaitAgreement() {
	w.Helper()
	start := time.Now()
	for _, h := range w.witnesses {
		h.Unblock()
	}
	w.releaseTemporaryInformers()
	timeUntil := func(compare func(context.Context, *kind) error) chan time.Duration {
		done := make(chan time.Duration, 1)
		go func() { // ended by patience
			for _, k := range w.sharedKinds() {
				w.eventually(func(ctx context.Context) error { return compare(ctx, k) })
			}
			done <- time.Since(start)
		}()
		return done
	}
	ours, theirs := timeUntil(w.compareCache), timeUntil(w.compareClientGo)
	w.changes.Wait()
	for _, k := range w.kinds {
		w.eventually(func(ctx context.Context) error { return w.compareInformer(ctx, k) })
	}
	o := agreementTimes{All: time.Since(start), Ours: <-ours, Theirs: <-theirs}
	w.outcomes = append(w.outcomes, o)
	for _, h := range w.witnesses {
		w.eventually(func(ctx context.Context) error { return w.compareHandler(ctx, h) })
		for _, line := range h.Violations() {
			w.Error(line)
		}
		h.Forget()
	}
	for _, h := range w.clientGoWitnesses { // client-go reports a replaced object as an update
		w.eventually(func(ctx context.Context) error { return w.compareHandler(ctx, h) })
		w.clientGoInconsistencies += len(h.Violations())
		h.Forget()
	}
	if w.Failed() {
		w.FailNow()
	}
}

// eventually repeats check until it succeeds. If it does not, the test fails but continues.
func (w *fixture) eventually(check func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			w.Error(err)
			return
		}
	}
}

// listObjects returns the objects of a type by key. It returns none if the type is missing.
func (w *fixture) listObjects(ctx context.Context, k *kind) (map[string]*unstructured.Unstructured, error) {
	all := map[string]*unstructured.Unstructured{}
	if !k.installed.Load() {
		return all, nil
	}
	list, err := w.admin.Resource(k.gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		all[list.Items[i].GetNamespace()+"/"+list.Items[i].GetName()] = &list.Items[i]
	}
	return all, nil
}

// compareInformer compares the status and the cache of an informer with the server, and its index with its
// objects.
func (w *fixture) compareInformer(ctx context.Context, k *kind) error {
	server, err := w.listObjects(ctx, k)
	if err != nil {
		return err
	}
	want := status.Synced
	if !k.installed.Load() {
		want = status.Pending
	}
	if status := k.informer.Status(); status.State != want {
		return fmt.Errorf("the status of %s is %+v, want %s", k.name, status, want)
	}
	if err := compareObjects(k.name, server, k.informer.GetStore()); err != nil {
		return err
	}
	indexed := 0
	for bucket := range buckets {
		objects, err := k.informer.GetIndexer().ByIndex(k.bucketIndex(), fmt.Sprint(bucket))
		if err != nil {
			return err
		}
		for _, o := range objects {
			if value, _, _ := unstructured.NestedInt64(o.(*unstructured.Unstructured).Object, "spec",
				"bucket"); value != int64(bucket) {
				return fmt.Errorf("%s: the index has %s in bucket %d, want its bucket %d", k.name,
					o.(*unstructured.Unstructured).GetName(), bucket, value)
			}
		}
		indexed += len(objects)
	}
	if indexed != len(server) {
		return fmt.Errorf("%s: the index has %d objects, the server %d", k.name, indexed, len(server))
	}
	return nil
}

// compareCache compares the cache under test with the server, as compareClientGo does for client-go's.
func (w *fixture) compareCache(ctx context.Context, k *kind) error {
	server, err := w.listObjects(ctx, k)
	if err != nil {
		return err
	}
	return compareObjects(k.name, server, k.informer.GetStore())
}

func (w *fixture) compareClientGo(ctx context.Context, k *kind) error {
	server, err := w.listObjects(ctx, k)
	if err != nil {
		return err
	}
	return compareObjects("client-go's "+k.name, server, w.clientGoInformers[k].GetStore())
}

// compareObjects compares all objects of a cache with the server's.
func compareObjects(name string, server map[string]*unstructured.Unstructured, store cache.Store) error {
	if keys := store.ListKeys(); len(keys) != len(server) {
		return fmt.Errorf("%s: the cache has %d objects, the server %d", name, len(keys), len(server))
	}
	for key, o := range server {
		cached, exists, err := store.GetByKey(key)
		if err != nil || !exists {
			return fmt.Errorf("%s: the cache lacks %s (%v)", name, key, err)
		}
		if u := cached.(*unstructured.Unstructured); !reflect.DeepEqual(u.Object, o.Object) {
			return fmt.Errorf("%s: the cache has version %s of %s, the server %s", name,
				u.GetResourceVersion(), key, o.GetResourceVersion())
		}
	}
	return nil
}

// compareHandler compares the objects according to a handler's events with the server's list.
func (w *fixture) compareHandler(ctx context.Context, h *handler) error {
	server, err := w.listObjects(ctx, h.kind)
	if err != nil {
		return err
	}
	live := h.LiveObjects()
	for key, o := range server {
		value, _, _ := unstructured.NestedInt64(o.Object, "spec", "value")
		if want := (harness.WitnessedObject{UID: o.GetUID(), Value: value}); live[key] != want {
			return fmt.Errorf("%s received %s %+v, the server has %+v", h.Name(), key, live[key], want)
		}
	}
	if len(live) != len(server) {
		return fmt.Errorf("%s received %d objects, the server has %d", h.Name(), len(live), len(server))
	}
	return nil
}
