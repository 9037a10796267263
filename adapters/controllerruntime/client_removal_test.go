package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestReadYourFinalizerRemovals verifies reads after an update that removes the last finalizer of a
// terminating object. The server then removes the object, but answers with the version before the removal.
func TestReadYourFinalizerRemovals(t *testing.T) {
	server := newServer(t)
	c := newConsistentClient(t, server, cache.Options{}, Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	shortest := [3]time.Duration{time.Hour, time.Hour, time.Hour} // by kind of write; a probe takes seconds
	for n := range 60 {
		o := newConfigMap("typed", "web", fmt.Sprint("a", n)).(*corev1.ConfigMap)
		o.Finalizers = []string{"example.com/hold"}
		must(c.Create(t.Context(), o))
		must(c.Delete(t.Context(), o))
		must(c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		began := time.Now()
		switch n % 3 {
		case 0:
			o.Finalizers = nil
			must(c.Update(t.Context(), o))
		case 1:
			before := o.DeepCopy()
			o.Finalizers = nil
			must(c.Patch(t.Context(), o, client.MergeFrom(before)))
		default:
			if n > 10 {
				continue // these writes need a probe
			}
			partial := newConfigMap("typed", "web", o.Name)
			must(c.Patch(t.Context(), partial, client.RawPatch(types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`))))
			began = time.Now().Add(time.Hour)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("write %d: Get() of the removed object = %v, want NotFound", n, err)
		}
		shortest[n%3] = min(shortest[n%3], time.Since(began))
	}
	for kind, waited := range shortest {
		if waited > time.Second {
			t.Errorf("writes of kind %d: each read took %v or longer, as with a probe", kind, waited)
		}
	}
	ac := corev1ac.ConfigMap("a", "web")
	if removesObject(ac) {
		t.Error("removesObject() = true for an apply configuration without a deletion timestamp")
	}
	now := metav1.Now()
	ac.DeletionTimestamp = &now
	if !removesObject(ac) || removesObject(ac.WithFinalizers("a")) {
		t.Error("removesObject() does not depend on the finalizers of an apply configuration")
	}
}

// panickingPatch is a patch that panics when its data is computed.
type panickingPatch struct{}

func (panickingPatch) Type() types.PatchType              { return types.MergePatchType }
func (panickingPatch) Data(client.Object) ([]byte, error) { panic("no data") }

// TestWriteEndsAfterPanic verifies that reads do not wait for a write that has panicked, as in a reconcile
// that recovers.
func TestWriteEndsAfterPanic(t *testing.T) {
	server := newServer(t)
	c := newConsistentClient(t, server, cache.Options{}, Options{})
	o := configMap("web", "a")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = c.Patch(t.Context(), o, panickingPatch{})
	}()
	if running := c.(*cacheClient).writeLog.kinds[configMapKind.GroupKind()].runningWrites; len(
		running) > 0 {
		t.Errorf("%d writes are recorded as running, want 0", len(running))
	}
}

// TestGeneratedNames runs reads beside writes of objects with generated names. It finds data races with
// -race.
func TestGeneratedNames(t *testing.T) {
	server := newServer(t)
	c := newConsistentClient(t, server, cache.Options{}, Options{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { // ends after its writes
			for range 20 {
				o := configMap("web", "")
				o.SetGenerateName("a-")
				if err := c.Create(t.Context(), o); err != nil {
					t.Error(err)
				}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.ConfigMap{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestDeletionsAreForgotten verifies that the record of a deletion is removed when the informers of its
// namespace have applied it.
func TestDeletionsAreForgotten(t *testing.T) {
	server := newServer(t)
	options := cache.Options{DefaultNamespaces: map[string]cache.Config{"web": {}, "db": {}}}
	c := newConsistentClient(t, server, options, Options{})
	var all corev1.ConfigMapList
	if err := c.List(t.Context(), &all); err != nil { // both informers exist
		t.Fatal(err)
	}
	o := configMap("web", "a")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &all); err != nil || len(all.Items) != 0 {
		t.Fatalf("List() = %d objects, %v, want none", len(all.Items), err)
	}
	for _, w := range c.(*cacheClient).writeLog.kinds[configMapKind.GroupKind()].unversioned {
		t.Errorf("the deletion of %s is still recorded", w.key)
	}
}

// TestDeletionOfRecreatedObject verifies a deletion by name while the cache still has an earlier object of
// that name.
func TestDeletionOfRecreatedObject(t *testing.T) {
	server := newServer(t)
	c := newConsistentClient(t, server, cache.Options{}, Options{})
	o := newConfigMap("typed", "web", "a")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	l, gk, key := c.(*cacheClient).writeLog, configMapKind.GroupKind(), client.ObjectKeyFromObject(o)
	countWaits := func(uid types.UID) int {
		w := l.begin(gk, write{key: key, deletes: true, uid: uid})
		l.end(gk, w, false)
		return len(w.waits)
	}
	if countWaits("") != 1 || countWaits(o.GetUID()) != 1 {
		t.Error("a deletion of the cached object does not wait for its removal")
	}
	recreated := l.begin(gk, write{key: key})
	recreated.version = "1000000000"
	l.end(gk, recreated, true)
	if countWaits("") != 0 || countWaits("another") != 1 {
		t.Error("a deletion of a recreated object waits for the removal of the earlier object")
	}
}

// TestReadYourWritesOfClusterScoped verifies that a namespace in the key of a cluster-scoped object is
// ignored, by the cache and the client alike.
func TestReadYourWritesOfClusterScoped(t *testing.T) {
	server := newServer(t)
	c := newConsistentClient(t, server, cache.Options{}, Options{})
	keys := []client.ObjectKey{{Name: "a"}, {Namespace: "web", Name: "a"}}
	for _, key := range keys { // syncs the informers, so that later reads do not wait for the sync
		if err := c.Get(t.Context(), key, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	l, gk := c.(*cacheClient).writeLog, namespaceKind.GroupKind()
	running := l.begin(gk, write{key: keys[0]})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, key := range keys {
		if err := c.Get(ctx, key, &corev1.Namespace{}); !errors.Is(err, context.Canceled) {
			t.Errorf("read of %s during a write = %v, want context.Canceled", key, err)
		}
	}
	l.end(gk, running, false)

	o := object(namespaceKind, "web", "a")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.kinds[gk].versions[keys[0]]; !ok {
		t.Errorf("the recorded writes are %v, want one without the namespace", l.kinds[gk].versions)
	}
	o.SetNamespace("web")
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, w := range l.kinds[gk].unversioned {
		if w.key != keys[0] {
			t.Errorf("the recorded deletion has the key %s, want no namespace", w.key)
		}
	}
}
