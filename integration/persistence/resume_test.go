package persistence_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/storage/disk"
)

// place is a type on the server, and a folder.
type place struct {
	*testing.T
	gvr       schema.GroupVersionResource
	namespace string
	client    dynamic.ResourceInterface
	dir       string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	group := harness.Group(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Thing"))
	p := &place{T: t, gvr: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}, namespace: harness.Namespace(t), dir: t.TempDir()}
	config := rest.CopyConfig(harness.Config(t))
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	p.client = client.Resource(p.gvr).Namespace(p.namespace)
	return p
}

func (p *place) thing(name string, round int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": p.gvr.GroupVersion().String(), "kind": "Thing", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"round": int64(round), "secretName": name + "-tls", "dnsNames": []any{name + ".example.com", "www." + name + ".example.com"},
			"issuerRef": map[string]any{"name": "letsencrypt", "kind": "ClusterIssuer"}, "duration": "2160h", "usages": []any{"server auth", "client auth"},
		},
	}}
}

// each calls do for some numbers, eight at a time.
func (p *place) each(from, to int, do func(k int) error) {
	p.Helper()
	var next atomic.Int64
	next.Store(int64(from))
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for k := int(next.Add(1)) - 1; k < to; k = int(next.Add(1)) - 1 {
				if err := do(k); err != nil {
					p.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if p.Failed() {
		p.FailNow()
	}
}

func (p *place) create(from, to, round int) {
	p.Helper()
	p.each(from, to, func(k int) error {
		_, err := p.client.Create(p.Context(), p.thing(fmt.Sprintf("thing-%05d", k), round), metav1.CreateOptions{})
		return err
	})
}

// change updates some things, and deletes the others.
func (p *place) change(from, middle, to, round int) {
	p.Helper()
	p.each(from, to, func(k int) error {
		name := fmt.Sprintf("thing-%05d", k)
		if k >= middle {
			return p.client.Delete(p.Context(), name, metav1.DeleteOptions{})
		}
		patch := fmt.Sprintf(`{"spec":{"round":%d}}`, round)
		_, err := p.client.Patch(p.Context(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// run is what a process does: it follows the type until it has synced, compares what the cache holds and what a handler was
// told with the server, and ends. It returns how many lists of everything it sent.
func (p *place) run(what string, meanwhile func(*dynamicinformer.Informer)) (lists int, resumed bool) {
	p.Helper()
	config := rest.CopyConfig(harness.Config(p.T))
	config.QPS = -1
	var everything atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, p.gvr.Resource, &everything} })
	kept := disk.New(p.dir, disk.Options{})
	began, before := time.Now(), processorTime()
	f, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Persistence: kept})
	if err != nil {
		p.Fatal(err)
	}
	i, err := f.ForResource(p.gvr)
	if err != nil {
		p.Fatal(err)
	}
	told := &told{versions: map[string]string{}}
	if _, err := i.AddEventHandler(told.handler()); err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := f.Start(ctx); err != nil {
		p.Fatal(err)
	}
	if _, err := f.WaitForSync(ctx); err != nil {
		p.Fatal(err)
	}
	p.Logf("%s: synced after %v, with %v of processor time", what, time.Since(began).Round(time.Millisecond), processorTime()-before)
	if meanwhile != nil {
		meanwhile(i)
	}
	if err := i.Flush(ctx); err != nil {
		p.Fatal(err)
	}
	p.compare(what, i, told)
	if err := f.Shutdown(ctx); err != nil {
		p.Fatal(err)
	}
	status := i.Persistence()
	if status.Err != nil || status.Checkpoint.Objects != len(i.GetStore().ListKeys()) {
		p.Errorf("%s: what is kept: %+v", what, status)
	}
	if err := kept.Close(); err != nil {
		p.Error(err)
	}
	return int(everything.Load()), status.Resumed
}

// compare compares a cache that has nothing more to come, and what its handler was told, with the server.
func (p *place) compare(what string, i *dynamicinformer.Informer, told *told) {
	p.Helper()
	list, err := p.client.List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	want := map[string]string{}
	for _, o := range list.Items {
		want[p.namespace+"/"+o.GetName()] = o.GetResourceVersion()
	}
	got := map[string]string{}
	for _, obj := range i.GetStore().List() {
		o := obj.(*unstructured.Unstructured)
		got[p.namespace+"/"+o.GetName()] = o.GetResourceVersion()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("%s: the cache (-server +cache): %.2000s", what, diff)
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	if diff := cmp.Diff(want, told.versions); diff != "" || len(told.wrong) > 0 {
		p.Errorf("%s: the handler was told %v (-server +told): %.2000s", what, told.wrong, diff)
	}
}

// told is what a handler was told.
type told struct {
	mu       sync.Mutex
	versions map[string]string
	wrong    []string
}

func (t *told) handler() cache.ResourceEventHandler {
	note := func(obj any, had bool, gone bool) {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		o := obj.(metav1.Object)
		key := o.GetNamespace() + "/" + o.GetName()
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, there := t.versions[key]; there != had {
			t.wrong = append(t.wrong, key)
		}
		if t.versions[key] = o.GetResourceVersion(); gone {
			delete(t.versions, key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { note(obj, false, false) },
		UpdateFunc: func(_, obj any) { note(obj, true, false) },
		DeleteFunc: func(obj any) { note(obj, true, true) },
	}
}

// counter counts the lists and watch-lists of everything.
type counter struct {
	http.RoundTripper
	resource   string
	everything *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	watches, initial := query.Has("watch"), query.Get("sendInitialEvents") == "true"
	if strings.HasSuffix(r.URL.Path, "/"+c.resource) && (initial || !watches && query.Get("limit") != "1") {
		c.everything.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

func (c counter) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Round(time.Millisecond)
}

// TestResumeOnAnAPIServer restarts an informer with nothing changed meanwhile, with changes, with changes of other types
// only, and after a compaction.
func TestResumeOnAnAPIServer(t *testing.T) {
	p := newPlace(t)
	n := *objects
	p.create(0, n, 0)
	if lists, resumed := p.run("cold", nil); lists == 0 || resumed {
		t.Errorf("the first process sent %d lists, resumed: %v", lists, resumed)
	}
	expect := func(what string, meanwhile func(*dynamicinformer.Informer)) {
		t.Helper()
		if lists, resumed := p.run(what, meanwhile); lists != 0 || !resumed {
			t.Errorf("%s: %d lists, resumed: %v", what, lists, resumed)
		}
	}
	expect("nothing has changed", nil)
	p.change(0, n/10, n/6, 1)
	p.create(n, n+n/20, 1)
	expect("with changes", func(i *dynamicinformer.Informer) {
		p.create(n+n/20, n+n/10, 2)
		harness.Eventually(t, func(context.Context) error {
			if got, want := len(i.GetStore().ListKeys()), n-(n/6-n/10)+n/10; got != want {
				return fmt.Errorf("there are %d objects, want %d", got, want)
			}
			return nil
		})
	})
	harness.Apply(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "other", "namespace": p.namespace},
	}})
	if harness.Has(t, harness.Since("1.34")) { // earlier servers do not bring a watch cache up to date to answer a list
		expect("other types have changed", nil)
	} else {
		p.run("other types have changed", nil)
	}

	p.change(n/5, n/4, n/3, 3)
	harness.Compact(t)
	harness.RestartAPIServer(t) // whose cache remembers, too
	if lists, resumed := p.run("compacted", nil); lists == 0 || resumed {
		t.Errorf("after a compaction: %d lists, resumed: %v", lists, resumed)
	}
	expect("after that", nil)
}
