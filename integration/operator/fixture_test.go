package operator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/integration/harness"
)

// fixture is a namespace of the test and a client without a cache.
type fixture struct {
	testing.TB
	client.Client
	namespace string
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(harness.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{TB: t, Client: admin, namespace: harness.Namespace(t)}
}

// install installs types of the demo platform until the test ends.
func install(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		harness.InstallCRDs(t, harness.ReadManifests(t, "../../testdata/crds/"+name+".yaml")...)
	}
}

// operator is a running sample operator.
type operator struct {
	ctrl.Manager
	stop func()
}

// startOperator runs a replica of the operator until the test ends or stop is called.
func (s *fixture) startOperator() *operator {
	s.Helper()
	// long enough for restarts of the API server
	lease, renew, retry := time.Minute, 45*time.Second, time.Second
	manager, err := NewManager(harness.Config(s), ctrl.Options{
		LeaderElection: true, LeaderElectionID: "delivery", LeaderElectionNamespace: s.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // several managers run in this process
	})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by cancel
	stopped := false
	stop := func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-ended; err != nil {
			s.Errorf("the operator ended with %v", err)
		}
	}
	s.Cleanup(stop)
	return &operator{Manager: manager, stop: stop}
}

// awaitCached waits until the operator's cache has an object.
func (o *operator) awaitCached(t testing.TB, object client.Object) {
	t.Helper()
	harness.Eventually(t, func(ctx context.Context) error {
		return o.GetClient().Get(ctx, client.ObjectKeyFromObject(object), &Release{})
	})
}

// applyEnvironment applies an environment that is deleted when the test ends.
func (s *fixture) applyEnvironment(name, region string) {
	s.Helper()
	harness.Apply(s, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.crdcache.dev/v1", "kind": "Environment", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"stage": "staging", "region": region},
	}})
}

// newObject returns an object of the demo platform in the namespace of the fixture.
func (s *fixture) newObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.crdcache.dev/v1", "kind": kind,
		"metadata": map[string]any{"namespace": s.namespace, "name": name},
		"spec":     spec,
	}}
}

func (s *fixture) newWorkload(name, environment string) *unstructured.Unstructured {
	return s.newObject("Workload", name, map[string]any{"environment": environment, "tier": "standard",
		"image": "registry.example.com/" + name + ":1"})
}

func (s *fixture) newRoute(kind, name, host, workload string) *unstructured.Unstructured {
	return s.newObject(kind, name,
		map[string]any{"host": host, "backends": []any{map[string]any{"workload": workload}}})
}

// create creates objects. They are deleted with their types or namespaces.
func (s *fixture) create(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		if err := s.Create(context.Background(), o); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *fixture) delete(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		if err := s.Delete(context.Background(), o); err != nil {
			s.Fatal(err)
		}
	}
}

// awaitCondition waits until the status of a workload has a condition with this status.
func (s *fixture) awaitCondition(workload, kind string, status metav1.ConditionStatus) {
	s.Helper()
	harness.Eventually(s, func(ctx context.Context) error {
		w := &Workload{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: workload}, w); err != nil {
			return err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, kind)
		if c == nil || c.Status != status {
			return fmt.Errorf("the condition %s of %s is %+v, want %s", kind, workload, c, status)
		}
		return nil
	})
}

// awaitHosts waits until exactly these hosts lead to a workload.
func (s *fixture) awaitHosts(workload, hosts string) {
	s.Helper()
	harness.Eventually(s, func(ctx context.Context) error {
		w := &Workload{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: workload}, w); err != nil {
			return err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, "Routed")
		if c == nil || c.Status != metav1.ConditionTrue || c.Message != hosts {
			return fmt.Errorf("the condition Routed of %s is %+v, want the hosts %s", workload, c, hosts)
		}
		return nil
	})
}

// awaitRegion waits until the settings of a workload name a region.
func (s *fixture) awaitRegion(workload, region string) {
	s.Helper()
	harness.Eventually(s, func(ctx context.Context) error {
		settings := &corev1.ConfigMap{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: workload}, settings); err != nil {
			return err
		}
		if got := settings.Data["region"]; got != region {
			return fmt.Errorf("the region in the settings of %s is %q, want %q", workload, got, region)
		}
		return nil
	})
}
