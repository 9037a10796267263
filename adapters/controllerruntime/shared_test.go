package controllerruntime

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
)

// TestSharedFactoryStoresObjects verifies that a cache refuses informers of a factory that store only
// metadata or nothing, unless its own options say otherwise.
func TestSharedFactoryStoresObjects(t *testing.T) {
	server := newServer(t)
	shared := func(defaults dynamicinformer.ResourceOptions,
		ours Options) (*dynamicinformer.Factory, *Cache) {
		factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config(),
			Defaults: defaults})
		must(t, err)
		t.Cleanup(func() { _ = factory.Shutdown(context.Background()) })
		ours.Factory = factory
		return factory, newCache(t, server, cache.Options{}, ours)
	}
	for want, mode := range map[string]dynamicinformer.StorageMode{
		"keep only .metadata of": dynamicinformer.StorageMetadata,
		"stores no objects":      dynamicinformer.StorageNone,
	} {
		defaults := dynamicinformer.ResourceOptions{Storage: dynamicinformer.Storage{Mode: mode}}
		factory, c := shared(defaults, Options{})
		if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("GetInformer: got the error %v, want %s", err, want)
		}
		if n := len(factory.Informers()); n != 0 {
			t.Errorf("%d informers remain, want 0", n)
		}
		_, c = shared(defaults,
			Options{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StoragePacked}})
		if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{},
			cache.BlockUntilSynced(false)); err != nil {
			t.Error(err)
		}
	}
}

// TestSharedFactoryOutlivesCaches verifies that when a cache ends, the informers of others run on, and others
// can acquire new ones.
func TestSharedFactoryOutlivesCaches(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	factory := newFactory(t, server)
	first, second := newCache(t, server, cache.Options{}, Options{Factory: factory}), newCache(t, server,
		cache.Options{}, Options{Factory: factory})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- first.Start(ctx) }() // ended by cancel
	if !first.WaitForCacheSync(ctx) {
		t.Fatal("timed out waiting for the cache's sync")
	}
	must(t, first.List(ctx, &corev1.ConfigMapList{}))
	start(t, second)
	calls, _ := addRecorder(t, second, &corev1.ConfigMap{})
	<-calls
	cancel()
	must(t, <-ended)
	server.Create(t, configMaps, configMap("web", "b"))
	select {
	case <-calls:
	case <-factory.Informers()[0].Stopped():
		t.Error("the end of a cache stopped the informer of another cache")
	}
	if err := second.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "b"},
		&corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
	h, err := factory.Acquire(namespaces)
	must(t, err)
	if err := h.WaitForSync(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRefusedCacheOptions(t *testing.T) {
	factory := newFactory(t, newServer(t))
	for name, tt := range map[string]struct {
		cacheOptions Options
		want         string
	}{
		"types beside a factory": {Options{Types: fixedTypes(allTypes), Factory: factory},
			"Options.Types: give them to the factory"},
		"a group beside a factory": {Options{Group: &dynamicinformer.Group{}, Factory: factory},
			"Options.Group: it excludes Factory"},
		"metadata": {Options{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}},
			"cannot return complete objects"},
		"none": {Options{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageNone}},
			"clients of a cache read objects"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.cacheOptions.validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("validate() = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestOneMeaning verifies that a cache has the same objects and indexes as the library with the same config,
// or that New refuses the config with the field that it cannot apply.
func TestOneMeaning(t *testing.T) {
	server := newServer(t)
	for _, name := range []string{"web/a", "web/b", "db/a"} {
		namespace, name, _ := strings.Cut(name, "/")
		server.Create(t, configMaps, configMap(namespace, name, "key", "value"))
	}
	table, err := os.ReadFile("../../testdata/one_meaning.txt")
	must(t, err)
	text := string(table) + "storage: {mode: Metadata}, | | | has storage mode Metadata\n" +
		"storage: {mode: None}, | | | has storage mode None\n"
	for line := range strings.Lines(strings.NewReplacer("NAMESPACE", "web", "NAME", "a", "KEPT", "",
		"FIELD", ".data.key").Replace(text)) {
		cells := strings.Split(line, "|")
		settings, refusal := strings.ReplaceAll(cells[0], "}, ", "}\n    "), strings.TrimSpace(cells[3])
		config := configOf(t, settings)
		if refusal == "" {
			config = configWith(t, settings)
		}
		c, err := New(server.Config(), cache.Options{Mapper: newMapper()}, Options{Indexes: config})
		if refusal != "" {
			if err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("with %q: %v, want %q", settings, err, refusal)
			}
			continue
		}
		must(t, err)
		start(t, c)
		b, err := bind.Run(t.Context(), server.Config(), config,
			bind.Options{Compression: defaultCompression})
		must(t, err)
		querier, err := b.Querier("configs")
		must(t, err)
		keys, err := querier.Keys(t.Context(), query.Eq("title", "a"), query.Options{})
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(configMapKind)
		err = errors.Join(err, c.List(t.Context(), list, client.MatchingFields{"title": "a"}))
		found := slices.Sorted(maps.Keys(objectNames(t, list)))
		if err != nil || !slices.Equal(found, keys) || len(keys) != 2 {
			t.Errorf("with %q: the cache finds %v, the library %v, %v", settings, found, keys, err)
		}
		target, err := b.Target("configs")
		must(t, err)
		for _, item := range list.Items {
			stored, _, err := target.Informer.GetStore().GetByKey(item.GetNamespace() + "/" + item.GetName())
			if err != nil || !cmp.Equal(stored.(*unstructured.Unstructured).Object["data"], item.Object["data"]) {
				t.Errorf("with %q: the cache has %v, the library %v", settings, item, stored)
			}
		}
	}
}

// configWith returns an index config of one resource, with an index and the given further fields.
func configWith(t *testing.T, besides string) *indexers.Config {
	t.Helper()
	return configOf(t, "indexes: [{name: title, path: .metadata.name}]\n    "+besides)
}

// configOf returns an index config of one resource with the given fields.
func configOf(t *testing.T, fields string) *indexers.Config {
	t.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "test.yaml", Data: []byte(`
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: test}
spec:
  resources:
  - name: configs
    match: {group: "", resource: configmaps}
    ` + fields + "\n")})
	must(t, err)
	return c
}

// TestEndedCacheCreatesNoInformers checks that after a cache has ended, its objects can be read, and it
// creates no informers.
func TestEndedCacheCreatesNoInformers(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config(), Linger: -1})
	must(t, err)
	t.Cleanup(func() { _ = factory.Shutdown(t.Context()) })
	must(t, factory.Start(t.Context()))
	for name, cacheOptions := range map[string]Options{"own factory": {}, "shared factory": {Factory: factory}} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, server, cache.Options{}, cacheOptions)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Start(ctx) }() // ended by cancel
			if !c.WaitForCacheSync(ctx) {
				t.Fatal("timed out waiting for the cache's sync")
			}
			key := client.ObjectKey{Namespace: "web", Name: "a"}
			must(t, c.Get(t.Context(), key, &corev1.ConfigMap{}))
			cancel()
			must(t, <-ended)
			if err := c.Get(t.Context(), key, &corev1.ConfigMap{}); err != nil {
				t.Errorf("Get() of a cached type = %v", err)
			}
			if err := c.List(t.Context(), &corev1.NamespaceList{}); !errors.Is(err,
				dynamicinformer.ErrStopped) {
				t.Errorf("List() of another type = %v, want ErrStopped", err)
			}
			for _, i := range factory.Informers() {
				t.Errorf("informer remains: %s", i.Status())
			}
		})
	}
}

// TestSharedFactoryShutDown verifies that when a factory's owner shuts it down or ends its context, a running
// cache returns errors instead of stale objects.
func TestSharedFactoryShutDown(t *testing.T) {
	for name, started := range map[string]bool{"shut down": false, "its context ends": true} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			server.Create(t, configMaps, configMap("web", "a"))
			factory := newFactory(t, server)
			c := newCache(t, server, cache.Options{}, Options{Factory: factory})
			i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
			must(t, err)
			end := func() { _ = factory.Shutdown(context.Background()) }
			if started {
				ctx, cancel := context.WithCancel(t.Context())
				must(t, factory.Start(ctx))
				end = cancel
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- c.Start(ctx) }() // ended by cancel, or with the factory
			if !c.WaitForCacheSync(ctx) {
				t.Fatal("timed out waiting for the cache's sync")
			}
			sharedInformer := factory.Informers()[0]
			end()
			<-sharedInformer.Stopped()
			for _, err := range []error{
				c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "a"}, &corev1.ConfigMap{}),
				c.List(ctx, &corev1.ConfigMapList{}),
			} {
				if !errors.Is(err, dynamicinformer.ErrStopped) {
					t.Errorf("read after the end of the factory = %v, want ErrStopped", err)
				}
			}
			if !i.IsStopped() {
				t.Error("IsStopped() = false after the end of the factory")
			}
			if started {
				cancel()
			}
			if err := <-ended; errors.Is(err, dynamicinformer.ErrStopped) == started {
				t.Errorf("Start() = %v, want ErrStopped: %v", err, !started)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"},
				&corev1.ConfigMap{}); !started && !errors.Is(err, dynamicinformer.ErrStopped) {
				t.Errorf("Get() after the end of Start = %v, want ErrStopped", err)
			}
		})
	}
}

// TestReadsDoNotWaitForOtherIndexes checks that reads continue while another caller adds an index to the
// informer of another type.
func TestReadsDoNotWaitForOtherIndexes(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	server.Create(t, namespaces, object(namespaceKind, "", "web"))
	factory := newFactory(t, server)
	first, second := newCache(t, server, cache.Options{}, Options{Factory: factory}), newCache(t, server,
		cache.Options{}, Options{Factory: factory})
	start(t, first)
	start(t, second)
	if err := errors.Join(first.List(t.Context(), &corev1.ConfigMapList{}),
		second.List(t.Context(), &corev1.NamespaceList{})); err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	slow := toolscache.Indexers{"slow": func(any) ([]string, error) {
		close(entered)
		<-release
		return nil, nil
	}}
	acquired, listed := make(chan error, 1), make(chan error, 1)
	go func() { // ended by leave
		_, err := factory.Acquire(configMaps,
			dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.AllNamespaces(), Indexers: slow})
		acquired <- err
	}()
	<-entered
	go func() { listed <- second.List(context.Background(), &corev1.ConfigMapList{}) }() // ended by leave
	// Wait until a caller creates the listed resource.
	for {
		second.mu.RLock()
		making := len(second.mu.kindLocks[configMapKind])
		second.mu.RUnlock()
		if making > 0 {
			break
		}
		runtime.Gosched()
	}
	if err := second.Get(t.Context(), client.ObjectKey{Name: "web"}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
	close(release)
	if err := errors.Join(<-acquired, <-listed); err != nil {
		t.Error(err)
	}
	if n := len(factory.Informers()); n != 2 {
		t.Errorf("%d informers, want one for each type", n)
	}
}

// TestLeftShardHandlers verifies that handlers of all forms receive the objects that leave the shard, in
// their form.
func TestLeftShardHandlers(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	emptyShard := dynamicinformer.NewShard(sharding.ByUID, sharding.Range{})
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config(),
		Defaults: dynamicinformer.ResourceOptions{Shard: emptyShard}})
	must(t, err)
	t.Cleanup(func() { _ = factory.Shutdown(context.Background()) })
	c := newCache(t, server, cache.Options{}, Options{Factory: factory})
	start(t, c)
	untyped, metadata := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	metadata.SetGroupVersionKind(untyped.GroupVersionKind())
	for _, object := range []client.Object{&corev1.ConfigMap{}, untyped, metadata} {
		for _, onLeftShard := range []func(any){nil,
			func(any) { t.Error("an object that left the shard was recorded as deleted") }} {
			informer, err := c.GetInformer(t.Context(), object)
			must(t, err)
			informer.(*Informer).resource.recordDeletion = onLeftShard
			departed := make(chan any, 10)
			handler := dynamicinformer.Named("test",
				dynamicinformer.WithLeftShard(toolscache.ResourceEventHandlerFuncs{
					DeleteFunc: func(any) { t.Error("an object that left the shard was handled as deleted") },
				}, func(object any) { departed <- object }))
			if _, err := informer.AddEventHandler(handler); err != nil {
				t.Fatal(err)
			}
			emptyShard.SetRanges()
			got := <-departed
			if reflect.TypeOf(got) != reflect.TypeOf(object) || got.(client.Object).GetName() != "a" {
				t.Errorf("OnLeftShard of %T got a %T", object, got)
			}
			emptyShard.SetRanges(sharding.Range{})
			for _, i := range factory.Informers() {
				must(t, i.WaitForShard(t.Context()))
			}
		}
	}
}
