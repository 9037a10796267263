package controllerruntime

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/testcluster"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
	}
	add(&corev1.ConfigMap{}, true)
	add(&corev1.Secret{}, false)
	uncachedClient, err := client.New(cluster.Config(), client.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	from := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	if err := uncachedClient.Create(ctx, from); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error)
	go func() { stopped <- manager.Start(ctx) }() // ended by cancel
	defer func() { cancel(); <-stopped }()

	eventually(t, "synced handler", func() bool {
		all := managerCache.Factory().Informers()
		return len(all) == 1 && len(all[0].Handlers()) == 1 && all[0].Handlers()[0].Synced
	})
	from.Labels = map[string]string{"version": "2"}
	if err := uncachedClient.Update(ctx, from); err != nil {
		t.Fatal(err)
	}
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
