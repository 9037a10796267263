package sharding_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/shard"
)

// Leases that are taken sooner than by default, and leave 3 s between the end of a tenure and the next.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
)

// replica is a manager that shares ConfigMaps.
type replica struct {
	name   string
	member *shard.Member
	stop   func()
	// dead cuts it off from the API server: for all others that is as if it had been killed.
	dead atomic.Bool
}

var errDead = errors.New("the replica was killed")

// through returns a transport that ends with the replica.
func (r *replica) through(inner http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if r.dead.Load() {
			return nil, errDead
		}
		response, err := inner.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		response.Body = &body{response.Body, r}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type body struct {
	io.ReadCloser
	replica *replica
}

func (b *body) Read(p []byte) (int, error) {
	read, err := b.ReadCloser.Read(p)
	if b.replica.dead.Load() {
		return 0, errDead
	}
	return read, err
}

// watched is an Assigner that tells the scene what is handed over.
type watched struct {
	*shard.Member
	scene *scene
	of    *replica
}

// Run implements shard.Assigner.
func (w watched) Run(ctx context.Context, handler shard.Handler) error {
	return w.Member.Run(ctx, shard.Handler{
		Acquired: handler.Acquired,
		Drain: func(ctx context.Context, tenure *shard.Tenure) {
			w.scene.left(w.of, tenure.Shard(), graceful)
			handler.Drain(ctx, tenure)
		},
	})
}

// start starts a replica.
func (s *scene) start(name string) *replica {
	s.Helper()
	r := &replica{name: name}
	rest := harness.Config(s)
	rest.Wrap(r.through)
	var err error
	r.member, err = shard.New(shard.Options{
		Config: rest, Namespace: s.namespace, Name: "scale", Identity: name, Shards: *shards,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, DrainTimeout: time.Second,
	})
	if err != nil {
		s.Fatal(err)
	}
	sharding, err := controllerruntime.NewSharding(controllerruntime.ShardingOptions{
		Assigner: watched{r.member, s, r}, Key: dynamicinformer.ShardByUID, Objects: []client.Object{&corev1.ConfigMap{}},
	})
	if err != nil {
		s.Fatal(err)
	}
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		NewCache:   controllerruntime.NewCacheFunc(controllerruntime.Options{Sharding: sharding}),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true), MaxConcurrentReconciles: 4},
	})
	if err != nil {
		s.Fatal(err)
	}
	reconciler := sharding.Reconciler(&corev1.ConfigMap{}, reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, s.reconcile(ctx, r, mgr.GetClient(), request)
	}))
	if err := errors.Join(mgr.Add(sharding), ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler)); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }() // ended by stop
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !r.dead.Load() {
			s.Errorf("%s ended: %v", name, err)
		}
	})
	s.Cleanup(r.stop)
	return r
}
