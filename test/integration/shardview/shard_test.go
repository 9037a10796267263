package shardview_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// objectCount is the number of objects of each type. The probability that a quarter of the hash space is
// empty is 10^-24.
const objectCount = 200

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// fixture has objects of a built-in type and a custom resource on two API servers: one with the feature gate,
// if its version has it, and one without.
type fixture struct {
	*testing.T
	admin           dynamic.Interface
	namespace       string
	customResources schema.GroupVersionResource
	filteringServer string
	plainServer     string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	config := harness.Config(t)
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{T: t, namespace: harness.Namespace(t), plainServer: server.Host}
	s.customResources = schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "boats"}
	harness.InstallCRDs(t, harness.NewCRD(s.customResources.Group, "Boat"))
	if harness.Has(t, harness.Shards) {
		s.filteringServer = harness.StartAnotherAPIServer(t, harness.EtcdAddress(t),
			"--feature-gates=ShardedListAndWatch=true")
	}
	config.QPS = -1
	if s.admin, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	for k := range objectCount {
		s.create(fmt.Sprint("x", k))
	}
	return s
}

func (s *fixture) create(name string) {
	s.Helper()
	for gvr, kind := range map[schema.GroupVersionResource]string{configMaps: "ConfigMap", s.customResources: "Boat"} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvr.GroupVersion().String(),
			"kind": kind}}
		u.SetName(name)
		if _, err := s.admin.Resource(gvr).Namespace(s.namespace).Create(s.Context(), u,
			metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

// replica has informers of both types that cache the objects of its shard.
type replica struct {
	*fixture
	shard     *dynamicinformer.Shard
	informers map[schema.GroupVersionResource]*dynamicinformer.Informer

	mu sync.Mutex
	// leftShard and deleted have the UIDs of the objects with these events.
	leftShard, deleted map[types.UID]bool
}

func (s *fixture) newReplica(host string, watchList bool, ranges ...sharding.Range) *replica {
	s.Helper()
	config := harness.Config(s.T)
	config.Host, config.QPS = "https://"+host, -1
	if !watchList {
		faults := conformance.NewFaults()
		faults.RefuseWatchList()
		config.Wrap(faults.Wrap)
	}
	return s.newReplicaFrom(config, ranges...)
}

func (s *fixture) newReplicaFrom(config *rest.Config, ranges ...sharding.Range) *replica {
	s.Helper()
	r := &replica{
		fixture: s, shard: dynamicinformer.NewShard(sharding.ByUID, ranges...),
		informers: map[schema.GroupVersionResource]*dynamicinformer.Informer{},
		leftShard: map[types.UID]bool{}, deleted: map[types.UID]bool{},
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config,
		Defaults: dynamicinformer.ResourceOptions{
			Shard: r.shard, Namespaces: dynamicinformer.InNamespaces(s.namespace),
		}})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := factory.Shutdown(context.Background()); err != nil {
			s.Error(err)
		}
	})
	for _, gvr := range []schema.GroupVersionResource{configMaps, s.customResources} {
		i, err := factory.ForResource(gvr)
		if err != nil {
			s.Fatal(err)
		}
		if _, err := i.AddEventHandler(dynamicinformer.WithLeftShard(cache.ResourceEventHandlerFuncs{
			DeleteFunc: func(obj any) {
				if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = lost.Obj
				}
				r.record(r.deleted, obj)
			},
		}, func(obj any) { r.record(r.leftShard, obj) })); err != nil {
			s.Fatal(err)
		}
		r.informers[gvr] = i
	}
	if err := factory.Start(s.Context()); err != nil {
		s.Fatal(err)
	}
	return r
}

// record adds an object to leftShard or deleted.
func (r *replica) record(set map[types.UID]bool, obj any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set[obj.(metav1.Object).GetUID()] = true
}

// awaitAgreement waits until the caches have the server's objects in the shard.
func (r *replica) awaitAgreement(step string) {
	r.Helper()
	harness.Eventually(r.T, func(ctx context.Context) error {
		for gvr, i := range r.informers {
			list, err := r.admin.Resource(gvr).Namespace(r.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			want, cached := map[string]string{}, map[string]string{}
			for _, u := range list.Items {
				if r.shard.Contains(&u) {
					want[u.GetName()] = u.GetResourceVersion()
				}
			}
			for _, obj := range i.GetStore().List() {
				cached[obj.(metav1.Object).GetName()] = obj.(metav1.Object).GetResourceVersion()
			}
			if !maps.Equal(want, cached) {
				return fmt.Errorf("%s: %s: the cache has %d objects, want %d", step, gvr.Resource,
					len(cached),
					len(want))
			}
			if err := i.WaitForShard(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkFilter verifies which side filters according to the status, and whether unneeded objects arrived.
func (r *replica) checkFilter(step string, gvr schema.GroupVersionResource, want sharding.Filter,
	wantUnneeded bool) {
	r.Helper()
	i := r.informers[gvr]
	if got := i.Status().Shard.Filter; got != want {
		r.Errorf("%s: %s: status.Filter is %q, want %q", step, gvr.Resource, got, want)
	}
	if dropped := i.Stats().ShardDropped; dropped > 0 != wantUnneeded {
		r.Errorf("%s: %s: %d unneeded objects arrived, want some: %v", step, gvr.Resource, dropped,
			wantUnneeded)
	}
}

// TestShards shares the objects of a type among replicas and moves ranges between them, with a server that
// filters and one that does not. The former must send no unneeded objects, and the status must report its
// filtering if it can be known.
func TestShards(t *testing.T) {
	s := newFixture(t)
	quarters := sharding.Split(4)
	for name, host := range map[string]string{"with": s.filteringServer, "without": s.plainServer} {
		for _, watchList := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s the feature, watch-list %v", name, watchList), func(t *testing.T) {
				filters := name == "with"
				if filters {
					harness.Require(t, harness.Shards)
				}
				s := *s
				s.T = t
				one := s.newReplica(host, watchList, quarters[0], quarters[1])
				two := s.newReplica(host, watchList, quarters[2], quarters[3])
				one.awaitAgreement("at first")
				two.awaitAgreement("at first")
				ofMaps, ofBoats := sharding.FilterClient, sharding.FilterClient
				if filters {
					// lists of custom resources do not report filtering
					ofMaps, ofBoats = sharding.FilterServer, sharding.FilterUnknown
					if watchList && harness.Has(t, harness.WatchList) {
						ofMaps = sharding.FilterUnknown
					}
				}
				one.checkFilter("at first", configMaps, ofMaps, !filters)
				one.checkFilter("at first", s.customResources, ofBoats, !filters)

				one.shard.SetRanges(quarters[0])
				two.shard.SetRanges(quarters[1:]...)
				one.awaitAgreement("the second quarter is handed over")
				two.awaitAgreement("the second quarter is handed over")
				s.create(fmt.Sprintf("new-%s-%v", name, watchList))
				one.awaitAgreement("an object is created")
				two.awaitAgreement("an object is created")
				one.checkLeftShard(quarters[1])
			})
		}
	}
}

// checkLeftShard verifies that exactly the objects in a range left the shard, and that none was deleted.
func (r *replica) checkLeftShard(from sharding.Range) {
	r.Helper()
	for gvr, i := range r.informers {
		if err := i.Flush(r.Context()); err != nil {
			r.Fatal(err)
		}
		list, err := r.admin.Resource(gvr).Namespace(r.namespace).List(r.Context(), metav1.ListOptions{})
		if err != nil {
			r.Fatal(err)
		}
		r.mu.Lock()
		for _, u := range list.Items {
			if in := from.Contains(sharding.Hash(string(u.GetUID()))); in != r.leftShard[u.GetUID()] &&
				u.GetName()[0] == 'x' {
				r.Errorf("%s %s left the shard: %v, want %v", gvr.Resource, u.GetName(), !in, in)
			}
		}
		if len(r.deleted) > 0 {
			r.Errorf("the handler received %d deletions, want none", len(r.deleted))
		}
		r.mu.Unlock()
	}
}

// TestOneServerFilters follows a shard through a load balancer over both servers. The cache must be
// right whichever server answers, and the status must report the last answers.
func TestOneServerFilters(t *testing.T) {
	harness.Require(t, harness.Shards)
	s := newFixture(t)
	balancer := harness.StartFaultProxy(t, s.filteringServer)
	config := harness.Config(t)
	config.Host, config.QPS = "https://"+balancer.Address(), -1
	faults := conformance.NewFaults()
	faults.RefuseWatchList()
	config.Wrap(faults.Wrap)
	r := s.newReplicaFrom(config, sharding.Split(4)[1])
	r.awaitAgreement("with")
	r.checkFilter("with", configMaps, sharding.FilterServer, false)
	for _, step := range []struct {
		host string
		want sharding.Filter
	}{{s.plainServer, sharding.FilterClient}, {s.filteringServer, sharding.FilterServer}} {
		balancer.Redirect(t, step.host)
		harness.Eventually(t, func(context.Context) error {
			faults.ExpireWatches() // the informers list again
			if got := r.informers[configMaps].Status().Shard.Filter; got != step.want {
				return fmt.Errorf("status.Filter is %q, want %q", got, step.want)
			}
			return nil
		})
		s.create(fmt.Sprintf("new-%s", step.want))
		r.awaitAgreement(string(step.want))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.deleted) > 0 {
		t.Errorf("the handler received %d deletions, want none", len(r.deleted))
	}
}

// openWatches counts the open watches of a client. The factory's watch of a CRD does not count.
type openWatches struct{ atomic.Int64 }

func (o *openWatches) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK && r.URL.Query().Get("watch") == "true" &&
			path.Base(r.URL.Path) != "customresourcedefinitions" {
			o.Add(1)
			response.Body = &openWatch{ReadCloser: response.Body,
				onClose: sync.OnceFunc(func() { o.Add(-1) })}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type openWatch struct {
	io.ReadCloser
	onClose func()
}

func (w *openWatch) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.onClose()
	}
	return n, err
}

func (w *openWatch) Close() error {
	w.onClose()
	return w.ReadCloser.Close()
}

// eventChecker checks the events of a handler: no object is added twice, and no version decreases.
type eventChecker struct {
	*testing.T
	versions map[types.UID]int // handlers are called one at a time
}

func (l *eventChecker) version(obj any) (types.UID, int) {
	o := obj.(metav1.Object)
	version, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil {
		l.Error(err)
	}
	return o.GetUID(), version
}

func (l *eventChecker) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			uid, version := l.version(obj)
			if known, twice := l.versions[uid]; twice {
				l.Errorf("%s was added at version %d and at %d", uid, known, version)
			}
			l.versions[uid] = version
		},
		UpdateFunc: func(_, obj any) {
			uid, version := l.version(obj)
			if known, added := l.versions[uid]; !added || version < known {
				l.Errorf("%s was updated to version %d after %d", uid, version, known)
			}
			l.versions[uid] = version
		},
		DeleteFunc: func(obj any) { l.Errorf("deleted: %v", obj) },
	}
}

// TestRangesComeOneByOne adds ranges repeatedly. In the end, each type has one watch, and no event was lost
// or repeated.
func TestRangesComeOneByOne(t *testing.T) {
	s := newFixture(t)
	for name, host := range map[string]string{"with": s.filteringServer, "without": s.plainServer} {
		t.Run(name+" the feature", func(t *testing.T) {
			s := *s
			s.T = t
			var open openWatches
			config := harness.Config(t)
			config.Host, config.QPS = "https://"+host, -1
			config.Wrap(open.wrap)
			r := s.newReplicaFrom(config)
			for _, i := range r.informers {
				if _, err := i.AddEventHandler((&eventChecker{t, map[types.UID]int{}}).
					handler()); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			var updating sync.WaitGroup
			updating.Go(func() { s.update(ctx, name) }) // ended by stop
			defer updating.Wait()
			defer stop()
			ranges := sharding.Split(12)
			for k := range ranges {
				r.shard.SetRanges(ranges[:k+1]...)
				for _, i := range r.informers {
					if err := i.WaitForShard(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			stop()
			updating.Wait()
			r.awaitAgreement("all ranges have come")
			harness.Eventually(t, func(context.Context) error {
				if n := open.Load(); n != int64(len(r.informers)) {
					return fmt.Errorf("%d watches are open for %d types", n, len(r.informers))
				}
				return nil
			})
			for _, i := range r.informers {
				if err := i.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// update changes the objects one after the other until ctx ends.
func (s *fixture) update(ctx context.Context, value string) {
	for n := 0; ctx.Err() == nil; n++ {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%s-%d"}}}`, value, n)
		for _, gvr := range []schema.GroupVersionResource{configMaps, s.customResources} {
			_, err := s.admin.Resource(gvr).Namespace(s.namespace).Patch(context.WithoutCancel(ctx),
				fmt.Sprint("x", n%objectCount), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				s.Error(err)
				return
			}
		}
	}
}
