package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestCacheThatIsNeverStarted checks that a cache that is not started leaks no goroutine. Otherwise synctest
// fails.
func TestCacheThatIsNeverStarted(t *testing.T) {
	server := newServer(t)
	for name, end := range map[string]func(*Cache){"forgotten": func(*Cache) {}, "closed": (*Cache).Close} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, server, cache.Options{}, Options{})
				i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
				must(t, err)
				if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				end(c)
			})
		})
	}
}

// TestClose closes a started and a new cache. A shared factory must continue to run.
func TestClose(t *testing.T) {
	server := newServer(t)
	factory := newFactory(t, server)
	for name, options := range map[string]Options{"its own factory": {}, "shared": {Factory: factory}} {
		t.Run(name, func(t *testing.T) {
			unstarted := newCache(t, server, cache.Options{}, options)
			if _, err := unstarted.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
				t.Fatal(err)
			}
			unstarted.Close()
			unstarted.Close()
			if err := unstarted.Start(t.Context()); !errors.Is(err, dynamicinformer.ErrStopped) {
				t.Errorf("Start() after Close = %v, want ErrStopped", err)
			}
			if err := unstarted.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"},
				&corev1.ConfigMap{}); !errors.Is(err, dynamicinformer.ErrStopped) {
				t.Errorf("Get() after Close = %v, want ErrStopped", err)
			}
			if unstarted.WaitForCacheSync(t.Context()) {
				t.Error("WaitForCacheSync() of a closed cache = true, want false")
			}
			running := newCache(t, server, cache.Options{}, options)
			ended := make(chan error)
			go func() { ended <- running.Start(t.Context()) }() // ended by Close
			if !running.WaitForCacheSync(t.Context()) {
				t.Fatal("timed out waiting for the sync")
			}
			running.Close()
			if err := <-ended; err != nil {
				t.Errorf("Start() = %v after Close, want nil", err)
			}
		})
	}
	if remaining := factory.Informers(); len(remaining) != 0 {
		for _, i := range remaining {
			t.Errorf("informer remains: %s", i.Status())
		}
	}
}

// TestEndDropsEvents verifies that after the end of its context the cache calls no handler again, like the
// stock cache. It does not wait for queued events to be handled.
func TestEndDropsEvents(t *testing.T) {
	server := newServer(t)
	for n := range 10 {
		server.Create(t, configMaps, configMap("web", fmt.Sprintf("a%d", n)))
	}
	c := newCache(t, server, cache.Options{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }() // ended by cancel
	i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)
	entered, gate, calls := make(chan struct{}, 10), make(chan struct{}), 0
	if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		calls++
		entered <- struct{}{}
		<-gate
	}}); err != nil {
		t.Fatal(err)
	}
	<-entered
	cancel()
	for deadline := time.Now().Add(2 * time.Minute); !i.IsStopped(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Error("timed out waiting for the informer to stop while a handler runs")
			break
		}
	}
	close(gate)
	if err := <-ended; err != nil {
		t.Errorf("Start() = %v, want nil", err)
	}
	if calls != 1 {
		t.Errorf("%d calls, want the running one only", calls)
	}
}

// heldLock is the lock of a leader election that another replica holds until it is released.
type heldLock struct {
	released atomic.Bool
	mu       sync.Mutex
	record   resourcelock.LeaderElectionRecord
}

func (l *heldLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := l.record
	if !l.released.Load() {
		record = resourcelock.LeaderElectionRecord{HolderIdentity: "other", LeaseDurationSeconds: 60,
			RenewTime: metav1.Now()}
	}
	text, err := json.Marshal(record)
	return &record, text, err
}

func (l *heldLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *heldLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = record
	return nil
}

func (*heldLock) RecordEvent(string) {}
func (*heldLock) Identity() string   { return "this" }
func (*heldLock) Describe() string   { return "a lock" }

// TestEnableWarmup verifies that before its manager is elected, a controller with EnableWarmup has synced its
// sources and queued the objects, with one list for each type, and reconciles none. The informer of a
// controller without EnableWarmup starts with the election. Once elected, controllers reconcile without
// another list, and the updates that came before are visible.
func TestEnableWarmup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cluster, err := testcluster.New(ctx, testcluster.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	var managerCache *Cache
	lock := &heldLock{}
	manager, err := ctrl.NewManager(cluster.Config(), ctrl.Options{
		Scheme: clientscheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		NewCache: func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			var err error
			managerCache, err = New(config, options, Options{})
			return managerCache, err
		},
		LeaderElection: true, LeaderElectionID: "test", LeaderElectionResourceLockInterface: lock,
		LeaseDuration: new(time.Minute), RenewDeadline: new(30 * time.Second),
		RetryPeriod: new(10 * time.Millisecond),
		Controller:  ctrlconfig.Controller{SkipNameValidation: new(true)}, // for -count
	})
	must(t, err)
	reconciled := make(chan string, 100)
	add := func(object client.Object, warmup bool) {
		t.Helper()
		err := ctrl.NewControllerManagedBy(manager).For(object).
			WithOptions(controller.Options{EnableWarmup: &warmup}).
			Complete(reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
				found := object.DeepCopyObject().(client.Object)
				if err := manager.GetClient().Get(ctx, r.NamespacedName, found); err != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				reconciled <- found.GetName() + found.GetLabels()["version"]
				return ctrl.Result{}, nil
			}))
		must(t, err)
	}
	add(&corev1.ConfigMap{}, true)
	add(&corev1.Secret{}, false)
	uncachedClient, err := client.New(cluster.Config(), client.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	from := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	must(t, uncachedClient.Create(ctx, from))
	stopped := make(chan error)
	go func() { stopped <- manager.Start(ctx) }() // ended by cancel
	defer func() { cancel(); <-stopped }()

	eventually(t, "synced handler", func() bool {
		all := managerCache.Factory().Informers()
		return len(all) == 1 && len(all[0].Handlers()) == 1 && all[0].Handlers()[0].Synced
	})
	from.Labels = map[string]string{"version": "2"}
	must(t, uncachedClient.Update(ctx, from))
	eventually(t, "update", func() bool {
		var found corev1.ConfigMap
		err := manager.GetClient().Get(ctx, client.ObjectKeyFromObject(from), &found)
		return err == nil && found.Labels["version"] == "2"
	})
	informers := managerCache.Factory().Informers()
	if len(informers) != 1 || informers[0].GVR().Resource != "configmaps" || len(reconciled) > 0 {
		t.Errorf("before the election, the informers are %v and %d objects were reconciled, want only configmaps and 0", informers, len(reconciled))
	}
	lock.released.Store(true)
	if got := <-reconciled; got != "a2" {
		t.Errorf("reconciled %s, want a2", got)
	}
	eventually(t, "second informer", func() bool { return len(managerCache.Factory().Informers()) == 2 })
	counters := managerCache.Factory().Metrics()[0].Counters
	if s := informers[0].Status(); s.Incarnation != 1 || counters.Lists != 1 ||
		counters.Relists != (status.Relists{}) {
		t.Errorf("after the election: %v, %+v, want one list", s, counters)
	}
}

// TestCachesOfAGroup verifies that caches of several clusters share one memory budget, as when
// multicluster-runtime creates them with one NewCacheFunc.
func TestCachesOfAGroup(t *testing.T) {
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{MemoryBudget: 1 << 20})
	must(t, err)
	newCache := NewCacheFunc(Options{Group: group, Name: "cluster"})
	var stops []func()
	for n := range 3 {
		server := newServer(t)
		name := fmt.Sprint("from-", n)
		server.Create(t, configMaps, configMap("web", name))
		c, err := newCache(server.Config(), cache.Options{Mapper: newMapper()})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }() // ended by cancel
		stops = append(stops, func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		if !c.WaitForCacheSync(ctx) {
			t.Fatal("the cache has not synced")
		}
		var found corev1.ConfigMapList
		if err := c.List(ctx, &found); err != nil || len(found.Items) != 1 || found.Items[0].Name != name {
			t.Errorf("List() = %v, %v; want the object of its own cluster", found.Items, err)
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "web", Name: name}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	}
	if stats := group.MemoryStats(); stats.Budget != 1<<20 || stats.Used == 0 {
		t.Errorf("MemoryStats() = %+v, want the budget and the memory of all caches", stats)
	}
	names := func() (names []string) {
		for name := range group.All() {
			names = append(names, name)
		}
		return names
	}
	if got, want := names(), []string{"cluster", "cluster (2)", "cluster (3)"}; !slices.Equal(got, want) {
		t.Errorf("the clusters are %q, want %q", got, want)
	}
	stops[1]()
	if got, want := names(), []string{"cluster", "cluster (3)"}; !slices.Equal(got, want) {
		t.Errorf("after a cache has ended, the clusters are %q, want %q", got, want)
	}
	stops[0]()
	stops[2]()
}
