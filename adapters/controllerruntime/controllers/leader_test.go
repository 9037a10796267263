package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
)

// otherLeader is the lock of a leader election that another replica holds while it is true.
type otherLeader struct {
	resourcelock.Interface
	atomic.Bool
}

func (l *otherLeader) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := &resourcelock.LeaderElectionRecord{}
	if l.Load() {
		record.HolderIdentity, record.LeaseDurationSeconds, record.RenewTime = "other", 60, metav1.Now()
	}
	text, err := json.Marshal(record)
	return record, text, err
}

func (l *otherLeader) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	if l.Load() {
		return errors.New("another replica is the leader")
	}
	return nil
}

func (*otherLeader) RecordEvent(string) {}
func (*otherLeader) Identity() string   { return "this" }
func (*otherLeader) Describe() string   { return "a lock" }

// TestLeaderElection verifies that without the lead, a manager with warm-up has synced informers and a filled
// queue but reconciles nothing, and that the loss of the lead ends all controllers.
func TestLeaderElection(t *testing.T) {
	cluster := newCluster(t)
	lock := &otherLeader{}
	lock.Store(true)
	manager, err := ctrl.NewManager(cluster.Config(), ctrl.Options{NewCache: controllerruntime.NewCache,
		Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "test",
		LeaderElectionResourceLockInterface: lock, LeaseDuration: new(time.Minute),
		RenewDeadline: new(5 * time.Second), RetryPeriod: new(10 * time.Millisecond),
		Controller: config.Controller{EnableWarmup: new(true)}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := New(manager, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, cluster: cluster, all: all}
	f.load("{apiVersion: v1, kind: Namespace, metadata: {name: web}}")
	f.install("apple")
	f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: a}}")
	log := &requestLog{counts: map[string]int{}}
	if err := all.Ensure(t.Context(), "apples", Settings{For: watchOf("apple"), Reconciler: log}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- manager.Start(t.Context()) }() // ended by the loss of the lead
	status := func() Status { return all.All()[0] }
	f.eventually("the queued object", func() bool { return status().QueueLength == 1 })
	if s := status(); s.Ready.Reason != "Waiting" || len(log.take()) > 0 {
		t.Errorf("without the lead, the status is %+v, want Waiting and no reconcile", s)
	}
	lock.Store(false)
	f.eventually("the reconcile", func() bool { return len(log.take()) == 1 })
	lock.Store(true)
	if err := <-ended; err == nil {
		t.Error("Start() after the loss of the lead = nil, want an error")
	}
	f.eventually("the end of all controllers", func() bool { return len(all.All()) == 0 })
	f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: b}}")
	err = all.Ensure(t.Context(), "apples", Settings{For: watchOf("apple"), Reconciler: log})
	if err == nil || len(log.take()) > 0 {
		t.Errorf("Ensure() after the loss of the lead = %v, want an error and no reconcile", err)
	}
}
