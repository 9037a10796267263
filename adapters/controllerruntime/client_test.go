package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// newConsistentClient returns a started cache and a consistent client that reads from it.
func newConsistentClient(t *testing.T, server *apitest.Server, options cache.Options,
	cacheOptions Options) client.Client {
	t.Helper()
	c := newCache(t, server, options, cacheOptions)
	start(t, c)
	config := server.Config()
	config.ContentType = "application/json"
	consistent, err := newCacheClient(config, client.Options{Mapper: newMapper(),
		Cache: &client.CacheOptions{Unstructured: true}}, c, true)
	must(t, err)
	return consistent
}

// newConfigMap returns a ConfigMap for Create, typed or unstructured.
func newConfigMap(form, namespace, name string) client.Object {
	if form == "typed" {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	return configMap(namespace, name)
}

// TestReadYourWrites sends each kind of write and then reads immediately, in each form. The objects must have
// the version of the write.
func TestReadYourWrites(t *testing.T) {
	for form := range emptyForms() {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			c := newConsistentClient(t, server, cache.Options{}, Options{})
			expect := func(step, name, version string) {
				t.Helper()
				got := emptyForms()[form]
				err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: name}, got)
				if version == "" != apierrors.IsNotFound(err) || err == nil &&
					got.GetResourceVersion() != version {
					t.Errorf("%s: got version %q (%v), want %q", step, got.GetResourceVersion(), err, version)
				}
				list := lists()[form]
				must(t, c.List(t.Context(), list, client.InNamespace("web")))
				if objectNames(t, list)["web/"+name] != (version != "") {
					t.Errorf("%s: List() = %v, want %s in it: %v", step, objectNames(t, list), name,
						version != "")
				}
			}
			must := func(err error) {
				t.Helper()
				must(t, err)
			}
			for n := range 20 {
				name := fmt.Sprint("a", n)
				o := newConfigMap(form, "web", name)
				must(c.Create(t.Context(), o))
				expect("create", name, o.GetResourceVersion())
				o.SetLabels(map[string]string{"a": "1"})
				must(c.Update(t.Context(), o))
				expect("update", name, o.GetResourceVersion())
				partial := emptyForms()[form]
				partial.SetNamespace("web")
				partial.SetName(name)
				must(c.Patch(t.Context(), partial, client.RawPatch(types.MergePatchType,
					[]byte(`{"metadata":{"labels":{"a":"2"}}}`))))
				expect("patch", name, partial.GetResourceVersion())
				must(c.Delete(t.Context(), partial))
				expect("delete", name, "")
			}
			o := newConfigMap(form, "web", "held")
			o.SetFinalizers([]string{"example.com/hold"})
			must(c.Create(t.Context(), o))
			must(c.Delete(t.Context(), o))
			got := emptyForms()[form]
			must(c.Get(t.Context(), client.ObjectKeyFromObject(o), got))
			if got.GetDeletionTimestamp() == nil {
				t.Error("Get() after Delete returned an object without a deletion timestamp")
			}
			must(c.Create(t.Context(), newConfigMap(form, "web", "last")))
			must(c.DeleteAllOf(t.Context(), newConfigMap(form, "web", ""), client.InNamespace("web")))
			expect("delete all", "last", "")
		})
	}
}

// TestReadYourWritesOfOtherObjects verifies that reads wait for writes of objects that the cache selects.
// They do not wait forever for other writes.
func TestReadYourWritesOfOtherObjects(t *testing.T) {
	assigner, err := shard.Static(0, 64, 64)
	must(t, err)
	oneShard, err := NewSharding(ShardingOptions{Assigner: assigner, Key: sharding.ByUID,
		Objects: []client.Object{&corev1.ConfigMap{}}})
	must(t, err)
	for name, tt := range map[string]struct {
		options      cache.Options
		cacheOptions Options
	}{
		"selector": {options: cache.Options{DefaultLabelSelector: labels.SelectorFromSet(
			labels.Set{"app": "a"})}},
		"namespaces": {options: cache.Options{DefaultNamespaces: map[string]cache.Config{"web": {},
			"db": {LabelSelector: labels.SelectorFromSet(labels.Set{"app": "a"})}}}},
		"shard": {cacheOptions: Options{Sharding: oneShard}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			c := newConsistentClient(t, server, tt.options, tt.cacheOptions)
			if s := tt.cacheOptions.Sharding; s != nil {
				testkit.RunUntilEnd(t, s.Start)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, name := range []string{"a", "b"} { // both are in the shard once in 4,000 runs
				o := configMap("db", name)
				must(t, c.Create(ctx, o))
				must(t, c.Delete(ctx, o))
				var list corev1.ConfigMapList
				if err := c.List(ctx, &list); err != nil || len(list.Items) != 0 {
					t.Fatalf("List() = %d objects, %v, want none", len(list.Items), err)
				}
				if err := c.Get(ctx, client.ObjectKeyFromObject(o),
					&corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
			if name != "shard" {
				o := labelled(configMap("web", "b"), map[string]string{"app": "a"})
				must(t, c.Create(ctx, o))
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), &corev1.ConfigMap{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestConcurrentWrites verifies that a read waits for writes of its object that are in flight when the read
// begins. A write that fails does not delay reads.
func TestConcurrentWrites(t *testing.T) {
	server := newServer(t)
	c := newConsistentClient(t, server, cache.Options{}, Options{})
	o := configMap("web", "a")
	must(t, c.Create(t.Context(), o))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err) // syncs the informers
	}
	l := c.(*cacheClient).writeLog
	running := l.begin(t.Context(), configMapKind.GroupKind(), write{key: client.ObjectKeyFromObject(o)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), &corev1.ConfigMap{}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("read of an object during its write = %v, want context.Canceled", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "b"},
		&corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("read of another object = %v, want NotFound", err)
	}
	l.end(configMapKind.GroupKind(), running, false)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
	stale := o.DeepCopy()
	stale.SetResourceVersion("1")
	if err := c.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("Update of a stale object: got the error %v, want a conflict", err)
	}
	must(t, c.Create(t.Context(), configMap("web", "dry"), client.DryRunAll))
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(configMapKind)
	if err := c.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Errorf("List() = %d objects, %v, want 1", len(list.Items), err)
	}
}

// TestWritesAreBounded verifies that the record of writes has a limited size, and that reads still wait for
// writes whose records were combined.
func TestWritesAreBounded(t *testing.T) {
	c := newCache(t, newServer(t), cache.Options{DefaultNamespaces: map[string]cache.Config{
		cache.AllNamespaces: {}, "n1": {}}}, Options{})
	r, _, err := c.resource(t.Context(), resourceKey{configMapKind, convert.Typed}, &corev1.ConfigMap{})
	must(t, err)
	informers, l := r.current.Load().informersByNamespace, newWriteLog(c)
	gk := configMapKind.GroupKind()
	for n := range 5 * maxWrites {
		key := types.NamespacedName{Namespace: fmt.Sprint("n", n%7), Name: fmt.Sprint(n)}
		l.end(gk, l.begin(t.Context(), gk, write{key: key, version: fmt.Sprint(n + 1)}), true)
		l.end(gk, l.begin(t.Context(), gk, write{key: key}), true)
	}
	k := l.kinds[gk]
	if len(k.versions) > maxWrites+2 || len(k.pending) > maxWrites {
		t.Errorf("%d versions and %d pending writes, want at most maxWrites", len(k.versions), len(k.pending))
	}
	version, pending := l.required(gk, types.NamespacedName{Namespace: "n1", Name: "1"}, informers[1])
	if len(version) < 4 || len(pending) != 1 || !pending[0].affectsUnknownObjects {
		t.Errorf("after dropped writes, the required version is %s with %+v", version, pending)
	}
	for _, tt := range []struct {
		key      types.NamespacedName
		informer *scopedInformer
		want     int
	}{
		{types.NamespacedName{}, informers[0], 5*maxWrites - 1}, // of namespace n0
		{types.NamespacedName{}, informers[1], 5 * maxWrites},
		{types.NamespacedName{Namespace: "n1"}, informers[1], 5 * maxWrites},
		{types.NamespacedName{Namespace: "n2"}, informers[0], 5*maxWrites - 6},
	} {
		if version, _ = l.required(gk, tt.key, tt.informer); version != fmt.Sprint(tt.want) {
			t.Errorf("the required version of a list of %q = %s, want %d", tt.key.Namespace, version, tt.want)
		}
	}
}

// TestShardedInformersAcceptHandlers verifies that sharded informers reject no handler except the one of
// controller-runtime's own consistent client.
func TestShardedInformersAcceptHandlers(t *testing.T) {
	if err := (&resource{sharded: true}).checkHandler(&apitest.Server{}); err != nil {
		t.Error(err)
	}
	if err := (&resource{sharded: true}).checkHandler(structHandler{}); err != nil {
		t.Error(err)
	}
}

type structHandler struct{}

// TestReadYourFinalizerRemovals verifies reads after an update that removes the last finalizer of a
// terminating object. The server then removes the object, but answers with the version before the removal.
func TestReadYourFinalizerRemovals(t *testing.T) {
	server := newServer(t)
	c := newConsistentClient(t, server, cache.Options{}, Options{})
	must := func(err error) {
		t.Helper()
		must(t, err)
	}
	countProbes := func() (probes int) {
		for _, request := range server.Requests() {
			if strings.Contains(request, "limit=1") {
				probes++
			}
		}
		return probes
	}
	var withoutProbe [3]int // reads by kind of write; a slow watch may cause probes
	for n := range 60 {
		o := newConfigMap("typed", "web", fmt.Sprint("a", n)).(*corev1.ConfigMap)
		o.Finalizers = []string{"example.com/hold"}
		must(c.Create(t.Context(), o))
		must(c.Delete(t.Context(), o))
		must(c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		probes := countProbes()
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
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("write %d: Get() of the removed object = %v, want NotFound", n, err)
		}
		if countProbes() == probes {
			withoutProbe[n%3]++
		}
	}
	if withoutProbe[0] == 0 || withoutProbe[1] == 0 || withoutProbe[2] > 0 {
		t.Errorf("%v reads needed no probe, want some of the first kinds and none of the last", withoutProbe)
	}
	removes := func(ac *corev1ac.ConfigMapApplyConfiguration) bool {
		object, err := objectOf(ac)
		must(err)
		return removesObject(object)
	}
	ac := corev1ac.ConfigMap("a", "web")
	if removes(ac) {
		t.Error("removesObject() = true for an apply configuration without a deletion timestamp")
	}
	ac.DeletionTimestamp = new(metav1.Now())
	if !removes(ac) || removes(ac.WithFinalizers("a")) {
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
	must(t, c.Create(t.Context(), o))
	func() {
		defer func() { _ = recover() }()
		_ = c.Patch(t.Context(), o, panickingPatch{})
	}()
	if n := len(c.(*cacheClient).writeLog.kinds[configMapKind.GroupKind()].pending); n > 0 {
		t.Errorf("%d writes are pending, want 0", n)
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
	must(t, c.Create(t.Context(), o))
	must(t, c.Delete(t.Context(), o))
	if err := c.List(t.Context(), &all); err != nil || len(all.Items) != 0 {
		t.Fatalf("List() = %d objects, %v, want none", len(all.Items), err)
	}
	for w := range c.(*cacheClient).writeLog.kinds[configMapKind.GroupKind()].pending {
		t.Errorf("the deletion of %s is still recorded", w.key)
	}
}

// TestDeletionOfRecreatedObject verifies a deletion by name while the cache still has an earlier object of
// that name.
func TestDeletionOfRecreatedObject(t *testing.T) {
	server := newServer(t)
	c := newConsistentClient(t, server, cache.Options{}, Options{})
	o := newConfigMap("typed", "web", "a")
	must(t, c.Create(t.Context(), o))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	l, gk, key := c.(*cacheClient).writeLog, configMapKind.GroupKind(), client.ObjectKeyFromObject(o)
	countWaits := func(uid types.UID) int {
		w := l.begin(t.Context(), gk, write{key: key, deletes: true, uid: uid})
		l.end(gk, w, false)
		return len(w.waits)
	}
	if countWaits("") != 1 || countWaits(o.GetUID()) != 1 {
		t.Error("a deletion of the cached object does not wait for its removal")
	}
	recreated := l.begin(t.Context(), gk, write{key: key})
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
	running := l.begin(t.Context(), gk, write{key: keys[0]})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, key := range keys {
		if err := c.Get(ctx, key, &corev1.Namespace{}); !errors.Is(err, context.Canceled) {
			t.Errorf("read of %s during a write = %v, want context.Canceled", key, err)
		}
	}
	l.end(gk, running, false)

	o := object(namespaceKind, "web", "a")
	must(t, c.Create(t.Context(), o))
	if _, ok := l.kinds[gk].versions[keys[0]]; !ok {
		t.Errorf("the recorded writes are %v, want one without the namespace", l.kinds[gk].versions)
	}
	o.SetNamespace("web")
	must(t, c.Delete(t.Context(), o))
	for w := range l.kinds[gk].pending {
		if w.key != keys[0] {
			t.Errorf("the recorded deletion has the key %s, want no namespace", w.key)
		}
	}
}
