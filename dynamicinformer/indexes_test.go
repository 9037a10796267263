package dynamicinformer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// indexNames is an IndexSet. The only value of each index is its name.
type indexNames string

func (n indexNames) Names() []string { return strings.Split(string(n), ",") }

func (n indexNames) Ordered(int) bool { return true }

func (n indexNames) Indexers() cache.Indexers {
	all := cache.Indexers{}
	for _, name := range n.Names() {
		all[name] = func(any) ([]string, error) { return []string{name}, nil }
	}
	return all
}

func (n indexNames) KeysJSON(_ []byte, keys [][]string) [][]string {
	for _, name := range n.Names() {
		keys = append(keys, []string{name})
	}
	return keys
}

func TestNamesOfIndexesAreUnique(t *testing.T) {
	own := func(any) ([]string, error) { return nil, nil }
	for _, test := range []struct {
		options ResourceOptions
		want    string
	}{
		{ResourceOptions{Indexes: indexNames("a,b")}, ""},
		{ResourceOptions{Indexes: indexNames("a,b"), Indexers: cache.Indexers{"c": own}}, ""},
		{ResourceOptions{Indexes: indexNames("a,b"), Indexers: cache.Indexers{"b": own}},
			`duplicate index "b"`},
		{ResourceOptions{Indexes: indexNames("a,a")}, `duplicate index "a"`},
		{ResourceOptions{Indexes: indexNames(cache.NamespaceIndex)}, `duplicate index "namespace"`},
	} {
		err := test.options.checkIndexes()
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: error %v, want %q", test.options, err, test.want)
		}
	}
}

// TestIndexesAreAddedAndRemoved adds and removes indexes of a filled cache. An earlier snapshot keeps its
// indexes.
func TestIndexesAreAddedAndRemoved(t *testing.T) {
	for _, mode := range []StorageMode{StoragePacked, StorageObject} {
		i := newStoredInformer(t, Storage{Mode: mode}, widget("ns", "x"))
		must(t, i.AddIndexes(indexNames("b,c")))
		if err := i.AddIndexes(indexNames("b")); err == nil {
			t.Error("AddIndexes() of an existing name succeeded, want an error")
		}
		if err := i.AddIndexes(indexNames("c"), "c", cache.NamespaceIndex); err != nil {
			t.Errorf("AddIndexes() that replaces an index = %v, want nil", err)
		}
		before := i.Snapshot()
		i.RemoveIndexes("a", "c", "none", cache.NamespaceIndex)
		for name, want := range map[string]int{"a": 0, "b": 1, "c": 0} {
			keys, _ := i.GetIndexer().IndexKeys(name, name)
			if len(keys) != want {
				t.Errorf("%v: index %s has the keys %v, want %d", mode, name, keys, want)
			}
			if keys, err := before.KeysByIndex(name, name); err != nil || len(keys) != 1 {
				t.Errorf("%v: the earlier snapshot has the keys %v in index %s (%v), want 1", mode, keys,
					name, err)
			}
		}
		if keys, err := i.GetIndexer().IndexKeys(cache.NamespaceIndex, "ns"); err != nil || len(keys) != 1 {
			t.Errorf("the index by namespace has the keys %v, %v, want 1", keys, err)
		}
		if err := i.AddIndexes(indexNames("a")); err != nil {
			t.Errorf("AddIndexes() of a removed name = %v, want nil", err)
		}
	}
}

func namesOf(objects []runtime.Object) map[string]bool {
	all := map[string]bool{}
	for _, obj := range objects {
		u := obj.(*unstructured.Unstructured)
		all[u.GetNamespace()+"/"+u.GetName()] = true
	}
	return all
}

func TestLister(t *testing.T) {
	server := newServer(t)
	a, b, c := widget("web", "a"), widget("web", "b"), widget("db", "c")
	b.SetLabels(map[string]string{"tier": "front"})
	c.SetLabels(map[string]string{"tier": "front"})
	server.Create(t, widgets, a, b, c)
	lister := startSynced(t, newFactory(t, server, Options{})).Lister()

	front := labels.SelectorFromSet(labels.Set{"tier": "front"})
	tests := map[string]struct {
		list func(labels.Selector) ([]runtime.Object, error)
		by   labels.Selector
		want map[string]bool
	}{
		"all": {lister.List, labels.Everything(), map[string]bool{"web/a": true, "web/b": true,
			"db/c": true}},
		"by label": {lister.List, front, map[string]bool{"web/b": true, "db/c": true}},
		"namespace": {lister.ByNamespace("web").List, labels.Everything(),
			map[string]bool{"web/a": true, "web/b": true}},
		"namespace by label": {lister.ByNamespace("web").List, front, map[string]bool{"web/b": true}},
		"empty namespace":    {lister.ByNamespace("none").List, labels.Everything(), map[string]bool{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := tt.list(tt.by)
			must(t, err)
			if diff := cmp.Diff(tt.want, namesOf(objects)); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
	if obj, err := lister.ByNamespace("db").Get("c"); err != nil ||
		obj.(*unstructured.Unstructured).GetName() != "c" {
		t.Errorf("Get() = %v, %v, want c", obj, err)
	}
	if obj, err := lister.Get("web/a"); err != nil || obj.(*unstructured.Unstructured).GetName() != "a" {
		t.Errorf("Get() by key = %v, %v, want a", obj, err)
	}
	if _, err := lister.ByNamespace("web").Get("c"); !apierrors.IsNotFound(err) ||
		!strings.Contains(err.Error(), "widgets.example.com") {
		t.Errorf("Get() of a missing object = %v, want NotFound with the resource", err)
	}
	if _, err := lister.Get("c"); !apierrors.IsNotFound(err) {
		t.Errorf("Get() without the namespace = %v, want NotFound", err)
	}
}

// TestRunWithStopChannel verifies that an informer can run without the factory, like client-go's.
func TestRunWithStopChannel(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, widget("web", "a"))
	f := newFactory(t, server, Options{})
	own := mustInformer(t, f, widgets)
	var i cache.SharedIndexInformer = own.Informer()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { // ended by stop
		defer close(ended)
		i.Run(stop)
	}()
	if !cache.WaitForCacheSync(longContext(t).Done(), i.HasSynced) {
		t.Fatal("timed out waiting for the sync")
	}
	if err := f.WaitForSync(longContext(t), widgets); err != nil {
		t.Error(err)
	}
	close(stop)
	<-ended
	if s := own.Status(); s.State != status.Stopped || !i.IsStopped() {
		t.Errorf("Status() = %+v, want Stopped", s)
	}
	if mustInformer(t, f, widgets) == own {
		t.Error("ForResource returned a stopped informer")
	}
}

func TestForResource(t *testing.T) {
	f := newFactory(t, newServer(t), Options{})
	first := mustInformer(t, f, widgets)
	if first.GVR() != widgets {
		t.Errorf("GVR() = %v, want widgets", first.GVR())
	}
	if again := mustInformer(t, f, widgets); again != first {
		t.Error("the second call returned another informer")
	}
	if other := mustInformer(t, f, gadgets); other == first {
		t.Error("another type has the same informer")
	}
	for _, bad := range []schema.GroupVersionResource{{}, {Version: "v1"}, {Resource: "widgets"},
		{Group: "example.com", Resource: "widgets"}} {
		if i, err := f.ForResource(bad); err == nil || i != nil {
			t.Errorf("ForResource(%v) = %v, %v; want an error", bad, i, err)
		}
	}
	must(t, f.Shutdown(t.Context()))
	for _, gvr := range []schema.GroupVersionResource{widgets, {Version: "v1", Resource: "new"}} {
		if i, err := f.ForResource(gvr); !errors.Is(err, ErrShutdown) || i != nil {
			t.Errorf("after Shutdown, ForResource(%v) = %v, %v; want ErrShutdown", gvr, i, err)
		}
	}
	if err := f.Start(t.Context()); !errors.Is(err, ErrShutdown) {
		t.Errorf("after Shutdown, Start = %v; want ErrShutdown", err)
	}
}

func TestMustForResource(t *testing.T) {
	f := newFactory(t, newServer(t), Options{})
	if f.MustForResource(widgets) != mustInformer(t, f, widgets) {
		t.Error("MustForResource returned another informer than ForResource")
	}
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "lacks a version") {
			t.Errorf("MustForResource panicked with %v, want an error about the version", err)
		}
	}()
	f.MustForResource(schema.GroupVersionResource{})
}

// TestHandlerCallsFactory verifies that callbacks run without locks, so they can call all methods of the
// factory except Shutdown.
func TestHandlerCallsFactory(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, widget("web", "a"))
	f := newFactory(t, server, Options{})
	i := mustInformer(t, f, widgets)
	done := make(chan error, 1)
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		_, err := f.ForResource(gadgets)
		if err == nil {
			err = f.Start(context.Background())
		}
		if err == nil {
			err = f.WaitForSync(ctx, gadgets)
		}
		_, _ = f.Status(), i.Status()
		done <- err
	}})
	must(t, err)
	must(t, f.Start(longContext(t)))
	if err := <-done; err != nil {
		t.Errorf("a call from a handler failed: %v", err)
	}
}
