package operator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/shard"
)

// startSharded runs a replica of the operator with sharded workloads until the test ends or stop is called.
func (s *fixture) startSharded(name string) (member *shard.Member, stop func()) {
	s.Helper()
	member, err := shard.New(shard.Options{Config: harness.Config(s), Namespace: s.namespace,
		Name: "delivery", Identity: name, Shards: 12})
	if err != nil {
		s.Fatal(err)
	}
	manager, err := NewShardedManager(harness.Config(s), ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}, member)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by cancel
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("replica %s ended with %v", name, err)
		}
	})
	s.Cleanup(stop)
	return member, stop
}

// TestSharded checks that three replicas without a leader deliver all workloads, and that two continue when
// one ends.
func TestSharded(t *testing.T) {
	install(t, "workloads", "environments", "releases")
	s := newFixture(t)
	s.applyEnvironment("shared", "north")
	for i := range 24 {
		s.create(s.newWorkload(fmt.Sprintf("web-%d", i), "shared"))
	}
	var members []*shard.Member
	var stops []func()
	for i := range 3 {
		member, stop := s.startSharded(fmt.Sprintf("replica-%d", i))
		members, stops = append(members, member), append(stops, stop)
	}
	harness.Eventually(t, func(context.Context) error {
		for _, m := range members {
			if held := len(m.Ownerships()); held != 4 {
				return fmt.Errorf("%s holds %d shards, want 4", m.Identity(), held)
			}
		}
		return nil
	})
	for i := range 24 {
		s.awaitCondition(fmt.Sprintf("web-%d", i), "Ready", metav1.ConditionTrue)
	}
	stops[0]()
	s.applyEnvironment("shared", "south")
	for i := range 24 {
		s.awaitRegion(fmt.Sprintf("web-%d", i), "south")
	}
}
