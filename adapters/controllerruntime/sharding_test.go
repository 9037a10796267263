package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/testcluster"
)

// fleet is a group of managers that shard ConfigMaps by UID. It records their reconciles.
type fleet struct {
	*testing.T
	cluster *testcluster.Cluster
	client.Client
	// onReconcile is called while a replica reconciles an object.
	onReconcile func(ctx context.Context, replica string) error

	mu struct {
		sync.Mutex
		changed        chan struct{}
		busy           map[types.UID]string
		reconciledData map[string]string // latest reconciled data by object name
		replicaByName  map[string]string // latest reconciling replica by object name
		deleted        map[string]int
	}
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	admin, err := client.New(cluster.Config(), client.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	f := &fleet{T: t, cluster: cluster, Client: admin,
		onReconcile: func(context.Context, string) error { return nil }}
	f.mu.changed, f.mu.busy = make(chan struct{}), map[types.UID]string{}
	f.mu.reconciledData, f.mu.replicaByName = map[string]string{}, map[string]string{}
	f.mu.deleted = map[string]int{}
	return f
}

// start starts a replica.
func (f *fleet) start(name string, drain time.Duration) (stop func()) {
	f.Helper()
	member, err := shard.New(shard.Options{Config: f.cluster.Config(), Namespace: "default", Name: "fleet",
		Identity: name, Shards: 16, DrainTimeout: drain})
	if err != nil {
		f.Fatal(err)
	}
	sharding, err := NewSharding(ShardingOptions{Assigner: member, Key: sharding.ByUID,
		Objects: []client.Object{&corev1.ConfigMap{}}})
	if err != nil {
		f.Fatal(err)
	}
	mgr, err := ctrl.NewManager(f.cluster.Config(), ctrl.Options{
		Scheme: clientscheme.Scheme, NewCache: NewCacheFunc(Options{Sharding: sharding}),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true), MaxConcurrentReconciles: 64},
	})
	if err != nil {
		f.Fatal(err)
	}
	reconciler := reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, f.reconcile(ctx, name, mgr.GetClient(), r)
	})
	if err := errors.Join(mgr.Add(sharding),
		ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
			Complete(sharding.Reconciler(&corev1.ConfigMap{}, reconciler))); err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }() // ended by stop
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("%s ended: %v", name, err)
		}
	})
	f.Cleanup(stop)
	return stop
}

// reconcile checks that no other replica works on the object.
func (f *fleet) reconcile(ctx context.Context, replica string, reader client.Reader, r ctrl.Request) error {
	var object corev1.ConfigMap
	err := reader.Get(ctx, r.NamespacedName, &object)
	if apierrors.IsNotFound(err) {
		f.mu.Lock()
		f.mu.deleted[r.Name]++
		f.mu.Unlock()
		f.progress()
		return nil
	}
	if err != nil {
		return err
	}
	if OwnershipFrom(ctx) == nil {
		f.Errorf("the context of a reconcile has no ownership")
	}
	f.mu.Lock()
	if other := f.mu.busy[object.UID]; other != "" {
		f.Errorf("%s works on %s while %s does", replica, r, other)
	}
	f.mu.busy[object.UID] = replica
	f.mu.Unlock()
	err = f.onReconcile(ctx, replica)
	f.mu.Lock()
	delete(f.mu.busy, object.UID)
	if err == nil {
		f.mu.reconciledData[r.Name], f.mu.replicaByName[r.Name] = object.Data["v"], replica
	}
	f.mu.Unlock()
	f.progress()
	return err
}

func (f *fleet) progress() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.mu.changed)
	f.mu.changed = make(chan struct{})
}

// await waits until done returns true.
func (f *fleet) await(condition string, done func() bool) {
	f.Helper()
	timeout := time.After(5 * time.Minute)
	for {
		f.mu.Lock()
		changed, ok := f.mu.changed, done()
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.Fatalf("timed out waiting for %s: seen %v by %v, deleted %v", condition, f.mu.reconciledData,
				f.mu.replicaByName, f.mu.deleted)
		}
	}
}

// write writes a value into all objects.
func (f *fleet) write(names []string, value string) {
	f.Helper()
	for _, name := range names {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Data: map[string]string{"v": value}}
		err := f.Create(f.Context(), object.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			err = f.Patch(f.Context(), object, client.RawPatch(types.MergePatchType,
				[]byte(fmt.Sprintf(`{"data":{"v":%q}}`, value))))
		}
		if err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fleet) allSeen(names []string, value string) func() bool {
	return func() bool {
		for _, name := range names {
			if f.mu.reconciledData[name] != value {
				return false
			}
		}
		return true
	}
}

// replicas returns the replicas that last reconciled the objects. The caller holds the lock.
func (f *fleet) replicas() map[string]bool {
	all := map[string]bool{}
	for _, replica := range f.mu.replicaByName {
		all[replica] = true
	}
	return all
}

// TestSharding starts and stops replicas while objects change. Each object is reconciled to its last state
// by one replica at a time, and an object that leaves a replica is not reconciled as deleted.
func TestSharding(t *testing.T) {
	f := newFleet(t)
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("object-%02d", i))
	}
	f.write(names, "one")
	stop := f.start("first", 0)
	f.await("one replica", f.allSeen(names, "one"))
	f.start("second", 0)
	f.start("third", 0)
	// A replica reconciles the objects that it receives.
	f.await("three replicas", func() bool { return len(f.replicas()) == 3 })
	f.write(names, "two")
	f.await("an update", f.allSeen(names, "two"))
	stop()
	f.write(names, "three")
	f.await("another update", f.allSeen(names, "three"))
	f.await("the first has gone", func() bool { return !f.replicas()["first"] })
	f.mu.Lock()
	if len(f.mu.deleted) > 0 {
		t.Errorf("objects that left a shard were reconciled as deleted: %v", f.mu.deleted)
	}
	f.mu.Unlock()

	for _, name := range names[:10] {
		if err := f.Delete(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	f.await("deletions", func() bool { return len(f.mu.deleted) == 10 })
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, times := range f.mu.deleted {
		if times != 1 {
			t.Errorf("the deletion of %s was reconciled %d times, want 1", name, times)
		}
	}
}

// TestShardingCancels verifies that when a shard must be released, blocked reconciles are cancelled, and no
// other replica starts before they have returned.
func TestShardingCancels(t *testing.T) {
	f := newFleet(t)
	f.onReconcile = func(ctx context.Context, replica string) error {
		if replica == "second" {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	f.start("first", time.Millisecond)
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("object-%02d", i))
	}
	f.write(names, "one")
	f.start("second", time.Millisecond)
	f.await("the second works", func() bool { return f.replicas()["second"] })
}

// TestShardingByNamespace verifies that all sharded types of a namespace are in one replica, which drops
// requests for other namespaces.
func TestShardingByNamespace(t *testing.T) {
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	admin, err := client.New(cluster.Config(), client.Options{Scheme: clientscheme.Scheme})
	must(t, err)
	namespaceNames := []string{"default", "web", "search", "payments", "storage", "platform"}
	for _, space := range namespaceNames {
		if space != "default" {
			if err := admin.Create(t.Context(),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, object := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
			object.SetNamespace(space)
			object.SetName("a")
			must(t, admin.Create(t.Context(), object))
		}
	}
	reconciles := map[string]int{}
	for ordinal := range 2 {
		fixed, err := shard.Static(ordinal, 2, 16)
		must(t, err)
		sharding, err := NewSharding(ShardingOptions{Assigner: fixed, Key: sharding.ByNamespace})
		must(t, err)
		c, err := New(cluster.Config(), cache.Options{Scheme: clientscheme.Scheme},
			Options{Sharding: sharding})
		must(t, err)
		start(t, c)
		var reconciledNamespaces []string
		reconciler := sharding.Reconciler(&corev1.ConfigMap{},
			reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
				reconciledNamespaces = append(reconciledNamespaces, r.Namespace)
				return ctrl.Result{}, c.Get(ctx, r.NamespacedName, &corev1.Secret{})
			}))
		for _, object := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Namespace{}} {
			if _, err := c.GetInformer(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		runSharding(t, sharding)
		for _, space := range namespaceNames {
			result, err := reconciler.Reconcile(t.Context(),
				ctrl.Request{NamespacedName: types.NamespacedName{Namespace: space, Name: "a"}})
			if err != nil || result.RequeueAfter > 0 {
				t.Errorf("%s: Reconcile() = %v, %v", space, result, err)
			}
		}
		whole := sharding.Reconciler(&corev1.Namespace{}, nil)
		if _, err := whole.Reconcile(t.Context(),
			ctrl.Request{NamespacedName: types.NamespacedName{Name: "web"}}); err == nil ||
			!strings.Contains(err.Error(), "not sharded") {
			t.Errorf("Reconcile() of a cluster-scoped type = %v, want an error", err)
		}
		var configMaps corev1.ConfigMapList
		var all corev1.NamespaceList
		must(t, errors.Join(c.List(t.Context(), &configMaps), c.List(t.Context(), &all)))
		if len(configMaps.Items) != len(reconciledNamespaces) || len(all.Items) < len(namespaceNames) {
			t.Errorf("replica %d has %d ConfigMaps and %d namespaces, but reconciles %v", ordinal,
				len(configMaps.Items), len(all.Items), reconciledNamespaces)
		}
		for _, space := range reconciledNamespaces {
			reconciles[space]++
		}
	}
	want := map[string]int{}
	for _, space := range namespaceNames {
		want[space] = 1
	}
	if !maps.Equal(reconciles, want) {
		t.Errorf("reconciled %v, want each namespace once: %v", reconciles, want)
	}
}

// runSharding runs a sharding until the end of the test, and waits until it owns its shards and they are
// ready.
func runSharding(t *testing.T, s *Sharding) {
	t.Helper()
	assigner := &blockedAssigner{s.options.Assigner, make(chan struct{}), make(chan struct{})}
	s.options.Assigner = assigner
	close(assigner.proceed)
	testkit.RunUntilEnd(t, s.Start)
	<-assigner.started
	for _, h := range s.mu.heldShards {
		<-h.ready
	}
}

func TestShardingOptions(t *testing.T) {
	fixed, err := shard.Static(0, 1, 4)
	must(t, err)
	for want, options := range map[string]ShardingOptions{
		"Assigner is missing": {Key: sharding.ByNamespace},
		`Key is ""`:           {Assigner: fixed},
		"Objects is missing":  {Assigner: fixed, Key: sharding.ByUID},
	} {
		if _, err := NewSharding(options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	sharding, err := NewSharding(ShardingOptions{Assigner: fixed, Key: sharding.ByUID,
		Objects: []client.Object{&corev1.ConfigMap{}}})
	must(t, err)
	if err := sharding.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no cache") {
		t.Errorf("Start() without a cache = %v, want an error", err)
	}
	wrapped := sharding.Reconciler(&corev1.ConfigMap{}, nil)
	if _, err := wrapped.Reconcile(t.Context(), ctrl.Request{}); err == nil ||
		!strings.Contains(err.Error(), "before the Sharding") {
		t.Errorf("Reconcile() without a cache = %v, want an error", err)
	}
	server := newServer(t)
	newCache(t, server, cache.Options{}, Options{Sharding: sharding})
	if _, err := New(server.Config(), cache.Options{Mapper: newMapper()},
		Options{Sharding: sharding}); err == nil || !strings.Contains(err.Error(), "another cache") {
		t.Errorf("New() of a second cache = %v, want an error", err)
	}
	wrapped = sharding.Reconciler(&corev1.Secret{}, nil)
	if _, err := wrapped.Reconcile(t.Context(), ctrl.Request{}); err == nil ||
		!strings.Contains(err.Error(), "not sharded") {
		t.Errorf("Reconcile() of a type that is not sharded = %v, want an error", err)
	}
	for k, r := range sharding.ranges {
		for _, hash := range []uint64{r.Start, r.End - 1} {
			if !r.Contains(hash) || !containsRange(sharding.ranges[k:k+1], r) {
				t.Errorf("range %d does not contain its hash", k)
			}
		}
	}
}
