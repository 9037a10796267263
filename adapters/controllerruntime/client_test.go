package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
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
	if err != nil {
		t.Fatal(err)
	}
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
				if err := c.List(t.Context(), list, client.InNamespace("web")); err != nil {
					t.Fatal(err)
				}
				if objectNames(t, list)["web/"+name] != (version != "") {
					t.Errorf("%s: List() = %v, want %s in it: %v", step, objectNames(t, list), name,
						version != "")
				}
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
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
	if err != nil {
		t.Fatal(err)
	}
	oneShard, err := NewSharding(ShardingOptions{Assigner: assigner, Key: sharding.ByUID,
		Objects: []client.Object{&corev1.ConfigMap{}}})
	if err != nil {
		t.Fatal(err)
	}
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
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.Start(ctx) }() // ended by the cleanup
				t.Cleanup(func() {
					cancel()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, name := range []string{"a", "b"} { // both are in the shard once in 4,000 runs
				o := configMap("db", name)
				if err := c.Create(ctx, o); err != nil {
					t.Fatal(err)
				}
				if err := c.Delete(ctx, o); err != nil {
					t.Fatal(err)
				}
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
				if err := c.Create(ctx, o); err != nil {
					t.Fatal(err)
				}
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
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err) // syncs the informers
	}
	l := c.(*cacheClient).writeLog
	running := l.begin(configMapKind.GroupKind(), write{key: client.ObjectKeyFromObject(o)})
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
	if err := c.Create(t.Context(), configMap("web", "dry"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(configMapKind)
	if err := c.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Errorf("List() = %d objects, %v, want 1", len(list.Items), err)
	}
}

// TestWritesAreBounded verifies that the record of writes has a limited size, and that reads still wait for
// writes whose records were combined.
func TestWritesAreBounded(t *testing.T) {
	l := newWriteLog(&Cache{})
	gk := configMapKind.GroupKind()
	for n := range 5 * maxWrites {
		key := types.NamespacedName{Namespace: fmt.Sprint("n", n%7), Name: fmt.Sprint(n)}
		l.end(gk, l.begin(gk, write{key: key, version: fmt.Sprint(n + 1)}), true)
		l.end(gk, l.begin(gk, write{key: key}), true)
	}
	k := l.kinds[gk]
	if len(k.versions) > maxWrites || len(k.unversioned) > maxWrites || len(k.runningWrites) != 0 {
		t.Errorf("%d writes with a version, %d without, %d running; want at most maxWrites, and none running",
			len(k.versions), len(k.unversioned),
			len(k.runningWrites))
	}
	all := func(*write) bool { return true }
	version, unversioned := l.requiredWrites(gk, nil, &types.NamespacedName{Namespace: "n1", Name: "1"}, all)
	if len(version) < 4 || !unversioned[0].affectsUnknownObjects {
		t.Errorf("after dropped writes, the required version is %s with %+v", version, unversioned[0])
	}
	if version, _ = l.requiredWrites(gk, nil, nil, all); version != fmt.Sprint(5*maxWrites) {
		t.Errorf("the required version of a list = %s, want the last write's", version)
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
