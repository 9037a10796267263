package sharding_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// childEnv has the childOptions of a replica's process as JSON.
const childEnv = "CRDCACHE_TEST_SHARDING_REPLICA"

// Leases expire sooner than by default. The gap between two ownerships remains 3 s.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
)

// workers limits the concurrent reconciliations of a replica.
const workers = 4

type childOptions struct {
	Name, Namespace string
	// Kubeconfig is a file. Host is the address of the API server.
	Kubeconfig, Host string
	// TestAddress is the address of the test.
	TestAddress string
	Shards      int
}

// Report is a message of a replica to the test. net/rpc requires an exported type. The replica waits for the
// answer, so the test receives the reports of several replicas in their real order.
type Report struct {
	Replica string
	UID     types.UID
	Object  string
	Value   string
	Shard   int
	Token   int64
}

// child is a manager that shards ConfigMaps.
type child struct {
	childOptions
	test *rpc.Client
}

// runChild runs a replica and returns the exit code of its process.
func runChild(text string) int {
	var c child
	if err := errors.Join(json.Unmarshal([]byte(text), &c.childOptions), c.run()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (c *child) run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process; the end of the test ends the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if c.test, err = rpc.Dial("tcp", c.TestAddress); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.Host = c.Host
	mgr, err := c.manager(config)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (c *child) manager(rest *rest.Config) (ctrl.Manager, error) {
	member, err := shard.New(shard.Options{
		Config: rest, Namespace: c.Namespace, Name: "scale", Identity: c.Name, Shards: c.Shards,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		DrainTimeout: time.Second,
	})
	if err != nil {
		return nil, err
	}
	sharding, err := controllerruntime.NewSharding(controllerruntime.ShardingOptions{
		Assigner: reportingAssigner{member, c}, Key: sharding.ByUID,
		Objects: []client.Object{&corev1.ConfigMap{}},
	})
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		NewCache:   controllerruntime.NewCacheFunc(controllerruntime.Options{Sharding: sharding}),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{c.Namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{MaxConcurrentReconciles: workers},
	})
	if err != nil {
		return nil, err
	}
	reconciler := sharding.Reconciler(&corev1.ConfigMap{},
		reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{}, c.reconcile(ctx, mgr.GetClient(), request)
		}))
	return mgr, errors.Join(mgr.Add(sharding),
		ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler))
}

// reportingAssigner is an Assigner that reports changes of shards to the test.
type reportingAssigner struct {
	*shard.Member
	child *child
}

func (t reportingAssigner) Run(ctx context.Context, handler shard.Handler) error {
	return t.Member.Run(ctx, shard.Handler{
		Acquired: func(ownerships []*shard.Ownership) {
			for _, ownership := range ownerships {
				t.child.sendReport("Acquired", Report{Shard: ownership.Shard(), Token: ownership.Token()})
			}
			handler.Acquired(ownerships)
		},
		Drain: func(ctx context.Context, ownership *shard.Ownership) {
			t.child.sendReport("Left", Report{Shard: ownership.Shard(), Token: ownership.Token()})
			handler.Drain(ctx, ownership)
		},
	})
}

// sendReport sends a report. It ends the process if the test has ended.
func (c *child) sendReport(kind string, r Report) {
	r.Replica = c.Name
	if err := c.test.Call("Receiver."+kind, r, &struct{}{}); err != nil {
		fmt.Fprintln(os.Stderr, kind, err)
		os.Exit(1)
	}
}

// reconcile simulates work on an object and then reports the object's value, unless the ownership has ended.
func (c *child) reconcile(ctx context.Context, reader client.Reader, request ctrl.Request) error {
	var object corev1.ConfigMap
	if err := reader.Get(ctx, request.NamespacedName, &object); apierrors.IsNotFound(err) {
		c.sendReport("Deleted", Report{Object: request.Name})
		return nil
	} else if err != nil {
		return err
	}
	if object.Data["v"] == "" {
		return nil // kube-root-ca.crt
	}
	ownership := controllerruntime.OwnershipFrom(ctx)
	r := Report{UID: object.UID, Object: object.Name, Value: object.Data["v"], Shard: ownership.Shard(),
		Token: ownership.Token()}
	c.sendReport("Begin", r)
	select { // some work
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
	if ctx.Err() != nil || !ownership.Valid() {
		c.sendReport("GiveUp", r)
		return context.Cause(ctx)
	}
	c.sendReport("End", r)
	return nil
}
