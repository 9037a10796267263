package dynamicinformer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/test/testcluster"
)

func testGroup(t testing.TB, options GroupOptions) *Group {
	t.Helper()
	g, err := NewGroup(options)
	must(t, err)
	ctx := longContext(t)
	t.Cleanup(func() { must(t, g.Shutdown(ctx)) })
	return g
}

// newIdentifiedServer returns a server with widgets whose UID can be read.
func newIdentifiedServer(t *testing.T, names ...string) *apitest.Server {
	t.Helper()
	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true},
		apitest.Type{GVR: namespacesGVR, Kind: "Namespace"})
	createNamespaces(t, server, metav1.NamespaceSystem)
	for _, name := range names {
		server.Create(t, widgets, widget("web", name))
	}
	return server
}

// addSynced adds a cluster and waits for its widgets.
func addSynced(t testing.TB, g *Group, name string, options Options) *Informer {
	t.Helper()
	f, err := g.Add(name, options)
	must(t, err)
	return startSynced(t, f)
}

func TestGroupErrors(t *testing.T) {
	server := newServer(t)
	g := testGroup(t, GroupOptions{})
	options := Options{Config: server.Config()}
	addSynced(t, g, "one", options)
	_, err := g.Add("client", Options{Client: server.Client(t)})
	must(t, err)
	add := func(name string, options Options) error {
		_, err := g.Add(name, options)
		return err
	}
	_, negative := NewGroup(GroupOptions{MemoryBudget: -1})
	removed := add("removed", options)
	must(t, removed)
	must(t, g.Remove(t.Context(), "removed"))
	must(t, add("removed", options)) // the name is free
	for _, test := range []struct {
		err  error
		is   error
		text string
	}{
		{err: negative, text: "must not be negative"},
		{err: add("one", options), is: ErrClusterExists},
		{err: add("", options), text: "its name is empty"},
		{err: add("two", Options{}), text: "Client or Config is required"},
		{err: add("two", Options{Config: server.Config(), MemoryBudget: 1}), text: "GroupOptions.MemoryBudget"},
		{err: g.Remove(t.Context(), "two"), is: ErrUnknownCluster},
		{err: g.Update("two", server.Config()), is: ErrUnknownCluster},
		{err: g.Update("client", server.Config()), text: "its Client cannot be replaced"},
		{err: g.Update("one", nil), text: "the REST config is nil"},
	} {
		if test.err == nil || test.is != nil && !errors.Is(test.err, test.is) ||
			!strings.Contains(test.err.Error(), test.text) {
			t.Errorf("Add() = %v, want %v with the text %q", test.err, test.is, test.text)
		}
	}
	var names []string
	for name := range g.All() {
		names = append(names, name)
	}
	if want := []string{"client", "one", "removed"}; !slices.Equal(names, want) {
		t.Errorf("All() = %q, want %q", names, want)
	}
	must(t, g.Shutdown(longContext(t)))
	if err := add("late", options); !errors.Is(err, ErrShutdown) || len(g.Status()) != 0 {
		t.Errorf("after Shutdown, Add() = %v with clusters %v, want ErrShutdown and none", err, g.Status())
	}
}

// TestUnreachableClusterBlocksNothing verifies that a cluster whose requests hang, and one whose server has
// ended, do not delay another cluster of a group that lists one type at a time.
func TestUnreachableClusterBlocksNothing(t *testing.T) {
	ended := newIdentifiedServer(t, "a")
	hanging, healthy := newServer(t), newServer(t)
	hanging.AddFaults(unansweredRequests(widgetsPath), unansweredRequests(gadgetsPath))
	healthy.Create(t, widgets, widget("web", "b"))
	g := testGroup(t, GroupOptions{ListConcurrency: 1})
	stale := addSynced(t, g, "ended", Options{Config: ended.Config()})
	must(t, ended.Listener.Close())
	ended.CloseClientConnections()
	reachable := func(cluster string) status.Condition {
		for _, c := range g.Status() {
			if c.Name == cluster {
				return c.Reachable
			}
		}
		return status.Condition{}
	}
	await(t, func() bool { return reachable("ended").Status == metav1.ConditionFalse })
	f, err := g.Add("hanging", Options{Config: hanging.Config()})
	must(t, err)
	mustInformer(t, f, widgets)
	mustInformer(t, f, gadgets)
	must(t, f.Start(longContext(t)))
	hanging.AwaitRequest(t, widgetsPath)
	addSynced(t, g, "healthy", Options{Config: healthy.Config()})
	waitFor(t, stale, func(s status.Status) bool { return s.Reason == status.ReasonUnreachable })
	c := reachable("ended")
	if c.Since.IsZero() || c.Message == "" || len(stale.GetStore().ListKeys()) != 1 {
		t.Errorf("the condition is %+v, and %d objects are readable; want the time of the last contact, and 1 "+
			"object", c, len(stale.GetStore().ListKeys()))
	}
	if c := reachable("healthy"); c.Status != metav1.ConditionTrue {
		t.Errorf("the healthy cluster has the condition %+v, want True", c)
	}
	// Removing a cluster ends its lists.
	must(t, g.Remove(longContext(t), "hanging"))
	if active, waiting, _ := f.deps.Limiter.Load(); active+waiting != 0 {
		t.Errorf("the removed cluster has %d lists and %d waiting ones, want none", active, waiting)
	}
}

// TestRemoveEmptiesCaches removes a cluster to which the program still refers. Its persisted objects stay,
// and serve the cluster when it is added again, but no other cluster.
func TestRemoveEmptiesCaches(t *testing.T) {
	server := newIdentifiedServer(t, "a", "b")
	g, backend := testGroup(t, GroupOptions{}), newMemoryBackend()
	options := Options{Config: server.Config(), Persistence: backend}
	i := addSynced(t, g, "one", options)
	must(t, g.Remove(longContext(t), "one"))
	if n, used := len(i.GetStore().ListKeys()), i.Stats().Objects; n+used != 0 {
		t.Errorf("the removed cluster has %d objects in memory, want 0", max(n, used))
	}
	if i.HasSynced() {
		t.Error("the empty cache of the removed cluster is synced")
	}
	i = addSynced(t, g, "two", options)
	if p := i.Persistence(); p.Resumed {
		t.Errorf("another name: Persistence() = %+v, want a new list", p)
	}
	i = addSynced(t, g, "one", options)
	if p := i.Persistence(); !p.Resumed || len(i.GetStore().ListKeys()) != 2 {
		t.Errorf("the same name: Persistence() = %+v, want 2 restored objects", p)
	}
	must(t, g.Remove(longContext(t), "one"))
	// The name now belongs to another cluster.
	other := newIdentifiedServer(t, "c")
	i = addSynced(t, g, "one", Options{Config: other.Config(), Persistence: backend})
	if keys := i.GetStore().ListKeys(); i.Persistence().Resumed || !slices.Equal(keys, []string{"web/c"}) {
		t.Errorf("another cluster of this name has the objects %q, Persistence() = %+v; want its own", keys,
			i.Persistence())
	}
}

// TestSwappedNames verifies that after a restart with exchanged names of two clusters, no reader or handler
// gets the persisted objects of the other cluster, and each cluster is listed.
func TestSwappedNames(t *testing.T) {
	backend := newMemoryBackend()
	servers := map[string]*apitest.Server{"first": newIdentifiedServer(t, "x", "both"),
		"second": newIdentifiedServer(t, "y", "both")}
	own := map[string][]string{"first": {"web/both", "web/x"}, "second": {"web/both", "web/y"}}
	for step, names := range []map[string]string{{"a": "first", "b": "second"}, {"a": "first", "b": "second"},
		{"a": "second", "b": "first"}, {"a": "second", "b": "first"}} {
		g := testGroup(t, GroupOptions{})
		for name, server := range names {
			f, err := g.Add(name, Options{Config: servers[server].Config(), Persistence: backend})
			must(t, err)
			i := mustInformer(t, f, widgets)
			received := make(chan string, 10)
			_, err = i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
				received <- "web/" + o.(*unstructured.Unstructured).GetName()
			}})
			must(t, err)
			must(t, f.Start(longContext(t)))
			must(t, f.WaitForSync(longContext(t)))
			handled := []string{<-received, <-received}
			slices.Sort(handled)
			keys := slices.Sorted(slices.Values(i.GetStore().ListKeys()))
			if !slices.Equal(keys, own[server]) || !slices.Equal(handled, own[server]) || len(received) > 0 ||
				i.Persistence().Resumed != (step%2 == 1) {
				t.Errorf("step %d: %s has the objects %q, its handler received %q, Persistence() = %+v", step,
					name, keys, handled, i.Persistence())
			}
		}
		must(t, g.Shutdown(longContext(t)))
	}
}

// serveWithToken serves a server at another address, below a path, to requests with the token. It counts
// them.
func serveWithToken(t *testing.T, server *apitest.Server,
	token string) (config *rest.Config, requests *atomic.Int64) {
	requests = &atomic.Int64{}
	front := httptest.NewServer(http.StripPrefix("/gate", http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if r.Header.Get("Authorization") != "Bearer "+token {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			server.Server.Config.Handler.ServeHTTP(w, r)
		})))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return &rest.Config{Host: front.URL + "/gate", BearerToken: token, QPS: -1}, requests
}

func TestUpdateContinuesWatches(t *testing.T) {
	server := newIdentifiedServer(t, "a")
	first, before := serveWithToken(t, server, "first")
	second, after := serveWithToken(t, server, "second")
	g := testGroup(t, GroupOptions{})
	i := addSynced(t, g, "one", Options{Config: first})
	await(t, func() bool { return g.Status()[0].UID != "" })
	server.AwaitRequest(t, widgetsPath, "watch")
	must(t, g.Update("one", second))
	await(t, func() bool { return after.Load() > 1 })
	sent := before.Load()
	server.Create(t, widgets, widget("web", "b"))
	await(t, func() bool { return len(i.GetStore().ListKeys()) == 2 })
	lists := count(server, "watch-list "+widgetsPath) + count(server, "list "+widgetsPath+"?allow")
	if lists > 1 || i.Status().State != status.Synced || before.Load() != sent {
		t.Errorf("%d lists and the status %+v after an update, %d requests with the first connection; want 1 list, "+
			"Synced, no more requests", lists, i.Status(), before.Load()-sent)
	}

	// The third connection leads to another cluster.
	third, _ := serveWithToken(t, newIdentifiedServer(t, "other"), "third")
	must(t, g.Update("one", third))
	waitFor(t, i, func(s status.Status) bool {
		return s.LastError != nil && errors.Is(s.LastError, requests.ErrOtherCluster)
	})
	if keys := i.GetStore().ListKeys(); len(keys) != 2 {
		t.Errorf("after an update to another cluster, the cache has %q, want the objects of the first", keys)
	}
	must(t, g.Update("one", first))
	server.Create(t, widgets, widget("web", "c"))
	await(t, func() bool { return len(i.GetStore().ListKeys()) == 3 })
}

// TestGroupIsConcurrent adds, updates, removes and reads clusters at the same time.
func TestGroupIsConcurrent(t *testing.T) {
	server := newIdentifiedServer(t, "a", "b")
	g := testGroup(t, GroupOptions{MemoryBudget: 1 << 20, ListConcurrency: 2})
	ctx := longContext(t)
	var running sync.WaitGroup
	for n := range 8 {
		running.Go(func() {
			name := fmt.Sprint("cluster-", n%4) // two compete for each name
			for range 5 {
				f, err := g.Add(name, Options{Config: server.Config(),
					Defaults: ResourceOptions{Storage: Storage{Mode: StorageAdaptive,
						Compression: plainCompression{}}}})
				if errors.Is(err, ErrClusterExists) {
					_, _ = g.Status(), g.MemoryStats()
					_ = g.Update(name, server.Config()) // may have been removed
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := f.ForResource(widgets); err != nil && !errors.Is(err, ErrShutdown) {
					t.Error(err)
				}
				_ = f.Start(ctx)            // fails after a removal
				_ = f.WaitForSync(ctx)      // fails after a removal
				_ = g.Remove(ctx, name)     // another goroutine may have removed it
				_ = f.Shutdown(t.Context()) // has no effect
			}
		})
	}
	running.Wait()
	if c := g.Status(); len(c) != 0 {
		t.Errorf("the clusters %+v remain, want none", c)
	}
}

// plainCompression is a Compression that does not change texts.
type plainCompression struct{}

func (plainCompression) Train([][]byte) (Compressor, error) { return plainCompression{}, nil }

func (plainCompression) Compress(dst, src []byte) []byte { return append(dst, src...) }

func (plainCompression) Decompress(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

// soakClusters is the duration of TestClustersJoinAndLeave after the first round of all clusters.
var soakClusters = flag.Duration("soak-clusters", time.Second, "the time during which clusters join and leave")

// resourceUsage has the resources of the process. The files are known on Linux only.
type resourceUsage struct{ goroutines, files, heapKB int }

func measureUsage() resourceUsage {
	files, _ := os.ReadDir("/proc/self/fd") // none on other systems
	return resourceUsage{runtime.NumGoroutine(), len(files), int(heap() >> 10)}
}

// TestClustersJoinAndLeave replaces 200 clusters of two types all the time. Every other one gets a new
// kubeconfig before it leaves. Goroutines, files and memory must not grow.
func TestClustersJoinAndLeave(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const clusters, workers, servers = 200, 4, 4
	var addresses []string // two for each server
	for range servers {
		// apitest's server would record the requests.
		server, err := testcluster.New(t.Context(), testcluster.Options{})
		must(t, err)
		for n := range 20 {
			for _, kind := range []string{"ConfigMap", "Secret"} {
				o := widget("default", fmt.Sprint("c", n))
				o.SetAPIVersion("v1")
				o.SetKind(kind)
				must(t, server.Load(t.Context(), o))
			}
		}
		for range 2 {
			front := httptest.NewServer(server)
			t.Cleanup(func() {
				front.CloseClientConnections()
				front.Close()
			})
			addresses = append(addresses, front.URL)
		}
	}
	g, err := NewGroup(GroupOptions{MemoryBudget: 8 << 20})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background()) // a long run takes longer than longContext
	t.Cleanup(func() {
		must(t, g.Shutdown(ctx))
		cancel()
	})
	config := func(n int) *rest.Config {
		return &rest.Config{Host: addresses[n%len(addresses)], QPS: -1}
	}
	types := []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "secrets"}}
	replace := func(n int) error {
		name := fmt.Sprint("cluster-", n)
		if g.Factory(name) != nil {
			if n%2 == 0 {
				if err := g.Update(name, config(n+1)); err != nil {
					return err
				}
			}
			if err := g.Remove(ctx, name); err != nil {
				return err
			}
		}
		f, err := g.Add(name, Options{Config: config(n),
			Defaults: ResourceOptions{Storage: Storage{Mode: StorageAdaptive,
				Compression: plainCompression{}}}})
		if err != nil {
			return err
		}
		for _, gvr := range types {
			if _, err := f.ForResource(gvr); err != nil {
				return err
			}
		}
		if err := f.Start(ctx); err != nil {
			return err
		}
		return f.WaitForSync(ctx)
	}
	replaceAll := func() {
		var running sync.WaitGroup
		for first := range workers {
			running.Go(func() {
				for n := first; n < clusters; n += workers {
					if err := replace(n); err != nil {
						t.Errorf("replace cluster %d: %v", n, err)
						return
					}
				}
			})
		}
		running.Wait()
	}
	replaceAll()
	replaceAll()
	before, rounds := measureUsage(), 0
	for started := time.Now(); time.Since(started) < *soakClusters; rounds++ {
		replaceAll()
		if t.Failed() {
			return
		}
	}
	var after resourceUsage
	t.Cleanup(func() { t.Logf("%d rounds: %+v, before %+v", rounds, after, before) })
	await(t, func() bool { // connections end asynchronously
		after = measureUsage()
		return after.goroutines < before.goroutines*11/10 && after.files < before.files*11/10 &&
			after.heapKB < before.heapKB*11/10
	})
	if stats := g.MemoryStats(); len(g.Status()) != clusters || stats.Used == 0 {
		t.Errorf("%d clusters remain with %+v, want %d", len(g.Status()), stats, clusters)
	}
}
