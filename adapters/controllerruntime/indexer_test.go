package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// answers calls every method with which programs read a SharedIndexInformer.
func answers(i toolscache.SharedIndexInformer, added string) map[string]any {
	x := i.GetIndexer()
	all := map[string]any{"List": sortedObjects(x.List()), "ListKeys": sortedStrings(x.ListKeys()),
		"store": sortedObjects(i.GetStore().List()), "stopped": i.IsStopped(), "synced": i.HasSynced(),
		"controller": i.GetController().HasSynced(),
		"names":      slices.Sorted(maps.Keys(x.GetIndexers())),
		"conflicts": x.AddIndexers(toolscache.Indexers{added: nil}) != nil &&
			i.AddIndexers(toolscache.Indexers{toolscache.NamespaceIndex: nil}) != nil,
		"transform": textOf(i.SetTransform(nil)), "handler": textOf(i.SetWatchErrorHandler(nil))}
	record := func(name string, objects []any, err error) {
		all[name] = []any{sortedObjects(objects), textOf(err)}
	}
	for _, key := range []string{"web/ab", "web/", "ab", "/ab", "nowhere/ab", ""} {
		object, exists, err := x.GetByKey(key)
		all["GetByKey "+key] = []any{object, exists, textOf(err)}
	}
	object, exists, err := x.Get(&metav1.ObjectMeta{Namespace: "web", Name: "ab"})
	all["Get"] = []any{object, exists, textOf(err)}
	_, _, err = x.Get(1)
	all["Get 1"] = err != nil
	for _, name := range []string{toolscache.NamespaceIndex, "field:letter", "field:none", added, ""} {
		all["values "+name] = sortedStrings(x.ListIndexFuncValues(name))
		for _, value := range []string{"", "web", "web/a", "__all_namespaces/a", "/a", "a", "we/", "we/b/c"} {
			objects, err := x.ByIndex(name, value)
			record("ByIndex "+name+" "+value, objects, err)
			keys, err := x.IndexKeys(name, value)
			all["IndexKeys "+name+" "+value] = []any{sortedStrings(keys), textOf(err)}
		}
		objects, err := x.Index(name, sortedObjects(x.List())[0])
		record("Index "+name, objects, err)
	}
	objects, err := x.Index(toolscache.NamespaceIndex, &metav1.ObjectMeta{Namespace: "we"})
	record("Index", objects, err)
	return all
}

func sortedObjects(objects []any) []any {
	return slices.SortedFunc(slices.Values(objects), func(a, b any) int {
		return strings.Compare(client.ObjectKeyFromObject(a.(client.Object)).String(),
			client.ObjectKeyFromObject(b.(client.Object)).String())
	})
}

func sortedStrings(s []string) []string { return slices.Sorted(slices.Values(s)) }

// TestInformerEqualsStock compares the stores, indexes and settings of informers in each form with those of
// the stock cache.
func TestInformerEqualsStock(t *testing.T) {
	server := newServer(t)
	for _, name := range []string{"a", "ab", "ba", "empty", "none"} {
		server.Create(t, configMaps, configMap("web", name, "key", name))
		server.Create(t, configMaps, configMap("we", name, "key", name))
	}
	color := func(in any) (any, error) {
		in.(client.Object).SetLabels(map[string]string{"form": fmt.Sprintf("%T", in)})
		return in, nil
	}
	got := map[string]map[string]any{}
	for _, newCache := range map[string]cache.NewCacheFunc{"stock": cache.New, "ours": NewCache} {
		c, err := newCache(server.Config(), cache.Options{Mapper: newMapper()})
		must(t, err)
		informers := map[string]toolscache.SharedIndexInformer{}
		for form, example := range emptyForms() {
			i, err := c.GetInformer(t.Context(), example)
			must(t, err)
			informers[form] = i.(toolscache.SharedIndexInformer)
			added := toolscache.Indexers{"added": func(object any) ([]string, error) {
				return letters(object.(client.Object)), nil
			}}
			if err := errors.Join(informers[form].AddIndexers(added),
				c.IndexField(t.Context(), example, "letter", letters)); err != nil {
				t.Fatal(err)
			}
			if form != "unstructured" { // a transform of one form does not change the others
				must(t, informers[form].SetTransform(color))
			}
			calls := make(recorder, 100)
			if _, err := i.AddEventHandler(calls); err != nil {
				t.Fatal(err)
			}
		}
		start(t, c)
		for form, i := range informers {
			i.RunWithContext(t.Context()) // the cache runs it
			all := answers(i, "added")
			if got[form] == nil {
				got[form] = all
			} else if diff := cmp.Diff(got[form], all); diff != "" {
				t.Errorf("%s: the two caches differ:\n%s", form, diff)
			}
		}
		l, err := corelisters.NewConfigMapLister(informers["typed"].GetIndexer()).ConfigMaps("web").List(
			labels.SelectorFromSet(labels.Set{"form": "*v1.ConfigMap"}))
		if err != nil || len(l) != 5 {
			t.Errorf("%T: a lister returned %d ConfigMaps and %v, want 5", c, len(l), err)
		}
		server.Create(t, configMaps, configMap("web", "new"))
		eventually(t, "the version of the write", func() bool { // as Cluster API waits for its writes
			version := informers["typed"].LastSyncResourceVersion()
			store := informers["typed"].GetStore()
			if s, ok := store.(interface{ LastStoreSyncResourceVersion() string }); ok { // client-go 0.36
				version = s.LastStoreSyncResourceVersion()
			}
			object, exists, _ := store.GetByKey("web/new")
			return exists && object.(client.Object).GetResourceVersion() == version
		})
		server.Delete(t, configMaps, "web", "new")
	}
}

// TestIndexerOfSeveralNamespaces reads the store of an informer of which the namespaces change, with an
// object that does not fit the Go type.
func TestIndexerOfSeveralNamespaces(t *testing.T) {
	server := newServer(t)
	for _, namespace := range []string{"web", "we", "db"} {
		server.Create(t, configMaps, configMap(namespace, "a", "key", "value"))
	}
	c := newCache(t, server, cache.Options{DefaultNamespaces: map[string]cache.Config{"web": {}, "we": {}}},
		Options{})
	i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)
	x := i.(toolscache.SharedIndexInformer).GetIndexer()
	start(t, c)
	check := func(want ...string) {
		t.Helper()
		objects, err := x.Index(toolscache.NamespaceIndex, &metav1.ObjectMeta{Namespace: "we"})
		if keys := sortedStrings(x.ListKeys()); err != nil || !slices.Equal(keys, want) ||
			len(x.List()) != len(want) || len(objects) != 1 {
			t.Errorf("the keys are %v, and namespace %q has %v, %v, want %v", keys, "we", objects, err, want)
		}
	}
	check("we/a", "web/a")
	if err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, TypeSettings{ByObject: cache.ByObject{
		Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}}}); err != nil {
		t.Fatal(err)
	}
	check("db/a", "we/a", "web/a")
	if err := errors.Join(x.Add(nil), x.Replace(nil, "")); !errors.Is(err, errReadOnly) {
		t.Errorf("writes of the store = %v, want errReadOnly", err)
	}
	misfit := configMap("web", "misfit")
	misfit.Object["data"] = map[string]any{"key": []any{}}
	server.Create(t, configMaps, misfit)
	eventually(t, "the object", func() bool { return slices.Contains(x.ListKeys(), "web/misfit") })
	if _, exists, err := x.GetByKey("web/misfit"); !exists || err == nil {
		t.Errorf("GetByKey() of an object that does not fit = %v, %v, want an error", exists, err)
	}
	if _, err := x.ByIndex(toolscache.NamespaceIndex, "web"); err == nil || len(x.List()) != 3 {
		t.Errorf("ByIndex() with an object that does not fit = %v, List() has %d, want an error and 3", err,
			len(x.List()))
	}
}

// TestIndexerOfReducedObjects verifies that a store marks the objects that Keep has reduced.
func TestIndexerOfReducedObjects(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "key", "value"))
	c := newCache(t, server, cache.Options{}, Options{Keep: dynamicinformer.Keep{Paths: []string{".binaryData"}}})
	start(t, c)
	for form, example := range emptyForms() {
		if form == "metadata" { // may have a watch of its own
			continue
		}
		i, err := c.GetInformer(t.Context(), example)
		must(t, err)
		object, _, err := i.(*Informer).GetStore().GetByKey("web/a")
		if err != nil || !IsReduced(object.(client.Object)) {
			t.Errorf("%s: the store has %v, %v", form, object, err)
		}
	}
}

// TestWatchErrorHandlers verifies that a handler of an informer replaces the one of the options, for this
// informer only.
func TestWatchErrorHandlers(t *testing.T) {
	server := newServer(t)
	server.AddFaults(apitest.Fault{Path: "/api/v1/configmaps", Status: 403},
		apitest.Fault{Path: "/api/v1/namespaces", Status: 403})
	failures := make(chan string, 100)
	handler := func(name string) toolscache.WatchErrorHandlerWithContext {
		return func(_ context.Context, r *toolscache.Reflector, _ error) {
			select {
			case failures <- name + " " + r.TypeDescription():
			default:
			}
		}
	}
	c := newCache(t, server, cache.Options{DefaultWatchErrorHandler: handler("default")}, Options{})
	for name, object := range map[string]client.Object{"own": &corev1.ConfigMap{}, "": &corev1.Namespace{}} {
		i, err := c.GetInformer(t.Context(), object, cache.BlockUntilSynced(false))
		must(t, err)
		if name != "" {
			must(t, i.(*Informer).SetWatchErrorHandlerWithContext(handler(name)))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Start(ctx) }()
	got, want := map[string]bool{}, map[string]bool{"own /v1, Resource=configmaps": true,
		"default /v1, Resource=namespaces": true}
	for len(got) < len(want) {
		got[<-failures] = true
	}
	cancel()
	if err := <-ended; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the handlers received %v, want %v; Start() = %v", got, want, err)
	}
}

// TestForeign verifies that the types have every method of the foreign interfaces.
func TestForeign(t *testing.T) {
	for name, missing := range map[string][]string{
		"Cache":        testkit.Unimplemented[foreignCache](&Cache{}),
		"Informer":     testkit.Unimplemented[foreignInformer](&Informer{}),
		"indexer":      testkit.Unimplemented[foreignIndexer](&indexer{}),
		"registration": testkit.Unimplemented[foreignRegistration](&registration{}),
	} {
		if missing != nil {
			t.Errorf("%s lacks the methods %q", name, missing)
		}
	}
}
