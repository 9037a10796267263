package controllerruntime

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// blockedAssigner is an Assigner whose Run waits for proceed.
type blockedAssigner struct {
	shard.Assigner
	proceed, started chan struct{}
}

func (a *blockedAssigner) Run(ctx context.Context, h shard.Handler) error {
	<-a.proceed
	acquired := h.Acquired
	h.Acquired = func(ownerships []*shard.Ownership) {
		acquired(ownerships)
		close(a.started)
	}
	return a.Assigner.Run(ctx, h)
}

// slowSelector is a selector whose String blocks once blocks is set.
type slowSelector struct {
	labels.Selector
	blocks           atomic.Bool
	entered, release chan struct{}
	once             sync.Once
}

func (s *slowSelector) String() string {
	if s.blocks.Load() {
		s.once.Do(func() { close(s.entered) })
		<-s.release
	}
	return s.Selector.String()
}

// TestShardAwaitsInformersBeingCreated verifies that a new shard waits for informers that have synced with
// fewer ranges, even if the resource that uses them, in several namespaces, is still being created.
func TestShardAwaitsInformersBeingCreated(t *testing.T) {
	const path = "/api/v1/namespaces/a/configmaps"
	server := newServer(t)
	server.Create(t, configMaps, configMap("a", "x"))
	fixed, err := shard.Static(0, 1, 1)
	must(t, err)
	assigner := &blockedAssigner{fixed, make(chan struct{}), make(chan struct{})}
	sharding, err := NewSharding(ShardingOptions{Assigner: assigner, Key: sharding.ByNamespace})
	must(t, err)
	slow := &slowSelector{Selector: labels.SelectorFromSet(labels.Set{"k": "v"}), entered: make(chan struct{}),
		release: make(chan struct{})}
	c := newCache(t, server, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{"a": {}, "b": {LabelSelector: slow}}},
	}}, Options{Sharding: sharding})
	start(t, c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- sharding.Start(ctx) }() // ended by cancel
	slow.blocks.Store(true)
	go func() { // ended by release
		_, err := c.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
		ended <- err
	}()
	<-slow.entered
	first := c.Factory().Informers()[0]
	if err := first.WaitForSync(t.Context()); err != nil { // without ranges
		t.Fatal(err)
	}
	server.AddFaults(unansweredRequests(path))
	close(assigner.proceed)
	<-assigner.started
	server.AwaitRequest(t, path)
	slow.blocks.Store(false)
	close(slow.release)
	must(t, <-ended)
	found := false
	reconciler := sharding.Reconciler(&corev1.ConfigMap{},
		reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if err := c.Get(ctx, r.NamespacedName, &corev1.ConfigMap{}); err != nil {
				t.Errorf("Get() of a reconciled object = %v", err)
			}
			found = true
			return reconcile.Result{}, nil
		}))
	work := func() {
		t.Helper()
		if _, err := reconciler.Reconcile(ctx,
			reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	held := sharding.mu.heldShards[0]
	work()
	select {
	case <-held.ready:
		t.Error("the shard is ready before the caches have synced")
	case <-time.After(20 * time.Millisecond):
	}
	if found {
		t.Error("an object was reconciled before the caches have synced")
	}
	server.Repair()
	server.CloseClientConnections()
	first.Retry()
	<-held.ready
	if work(); !found {
		t.Error("the object was not reconciled after the sync")
	}
	cancel()
	must(t, <-ended)
}
