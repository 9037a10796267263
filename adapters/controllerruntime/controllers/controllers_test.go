package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/testcluster"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

type fixture struct {
	*testing.T
	cluster *testcluster.Cluster
	all     *Controllers
	stop    func()
}

// newFixture returns the controllers of a running manager.
func newFixture(t *testing.T, options Options) *fixture {
	t.Helper()
	cluster := newCluster(t)
	all, stop := runManager(t, cluster, options)
	f := &fixture{t, cluster, all, stop}
	f.load("{apiVersion: v1, kind: Namespace, metadata: {name: web}}")
	return f
}

func newCluster(t testing.TB) *testcluster.Cluster {
	t.Helper()
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// runManager runs a manager until the test ends, or stop is called.
func runManager(t testing.TB, cluster *testcluster.Cluster, options Options) (all *Controllers, stop func()) {
	t.Helper()
	manager, err := ctrl.NewManager(cluster.Config(), ctrl.Options{NewCache: controllerruntime.NewCache,
		Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if all, err = New(manager, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by cancel
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil || len(all.All()) > 0 {
			t.Errorf("Start() = %v, with %v left", err, all.All())
		}
	})
	t.Cleanup(stop)
	return all, stop
}

func (f *fixture) load(format string, args ...any) {
	f.Helper()
	u := &unstructured.Unstructured{}
	err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &u.Object)
	if err = errors.Join(err, f.cluster.Load(f.Context(), u)); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) delete(from dynamic.ResourceInterface, name string) {
	f.Helper()
	if err := from.Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

// install creates the CRD of a kind, whose plural is the kind with s.
func (f *fixture) install(kind string) { f.installVersions(kind, "Namespaced", "v1") }

func (f *fixture) installVersions(kind, scope string, versions ...string) {
	var served []string
	for n, version := range versions {
		served = append(served, fmt.Sprintf(`{name: %s, served: true, storage: %v, schema: {openAPIV3Schema: `+
			`{type: object, x-kubernetes-preserve-unknown-fields: true}}}`, version, n == len(versions)-1))
	}
	f.load(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]ss.example.com},
spec: {group: example.com, scope: %[2]s, names: {plural: %[1]ss, kind: %[1]s}, versions: [%[3]s]}}`,
		kind, scope, strings.Join(served, ", "))
}

func watchOf(kind string) Watch {
	return Watch{Type: Type{GroupKind: schema.GroupKind{Group: "example.com", Kind: kind}}}
}

// objects returns a client for the objects of a kind.
func (f *fixture) objects(kind string) dynamic.ResourceInterface {
	return f.cluster.Client().Resource(resourceOf(kind)).Namespace("web")
}

func resourceOf(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: kind + "s"}
}

func (f *fixture) eventually(what string, done func() bool) {
	f.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("timed out waiting for %s; %+v", what, f.all.All())
		}
	}
}

func (f *fixture) awaitStart() {
	f.Helper()
	f.eventually("the start of the manager", func() bool {
		f.all.mu.Lock()
		defer f.all.mu.Unlock()
		return f.all.ctx != nil
	})
}

// TestEnsure verifies that other options enqueue the difference, other predicates or handlers all objects,
// that a blocked controller delays no other, and takes more requests when MaxConcurrent rises, that a stopped
// one starts again, and the reasons of the status.
func TestEnsure(t *testing.T) {
	f := newFixture(t, Options{Workers: 3})
	ready := func(name string) metav1.Condition {
		s, _ := f.all.Status(name)
		return s.Ready
	}
	requests := make(chan types.NamespacedName, 100)
	settings := Settings{For: watchOf("apple"), Reconciler: reconcile.Func(
		func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			requests <- r.NamespacedName
			return reconcile.Result{}, nil
		})}
	ensure := func(name string, settings Settings) {
		t.Helper()
		if err := f.all.Ensure(t.Context(), name, settings); err != nil {
			t.Fatal(err)
		}
	}
	ensure("apples", settings)
	f.eventually("the reason", func() bool {
		return strings.Contains(ready("apples").Message, "apple.example.com is not installed")
	})
	f.install("apple")
	f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: a}}")
	if got := <-requests; got.Name != "a" {
		t.Errorf("reconciled %v, want a", got)
	}
	f.install("pear")
	f.load(`{apiVersion: example.com/v1, kind: pear, metadata: {namespace: web, name: p, ownerReferences: [
		{apiVersion: example.com/v2, kind: apple, name: owner, uid: u}, {apiVersion: v1, kind: apple, name: other, uid: v}]}}`)
	owned := watchOf("pear")
	in := func(namespace string) *dynamicinformer.ResourceOptions {
		return &dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces(namespace)}
	}
	owner := types.NamespacedName{Namespace: "web", Name: "owner"}
	other := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: owner}}
	})
	for n, change := range []struct {
		options    *dynamicinformer.ResourceOptions
		predicates []predicate.Predicate
		handler    handler.EventHandler
		enqueues   bool
	}{{nil, nil, nil, true}, {in("empty"), nil, nil, true}, {in("web"), nil, nil, true}, {nil, nil, nil, false},
		{nil, []predicate.Predicate{predicate.Funcs{}}, nil, true}, {nil, nil, other, true}} {
		owned.Options, owned.Predicates, owned.Handler = change.options, change.predicates, change.handler
		settings.Watches = []Watch{owned}
		ensure("apples", settings)
		if change.enqueues {
			if got := <-requests; got != owner {
				t.Errorf("after change %d of the watches, reconciled %v, want only the owner", n, got)
			}
		}
		f.eventually("the change", func() bool {
			f.all.mu.Lock()
			defer f.all.mu.Unlock()
			followed := f.all.controllers["apples"].watches[1].subscription.Types()
			if len(followed) != 1 || followed[0].Depth > 0 || followed[0].Status.State != status.Synced {
				return false
			}
			return (change.options != nil) == strings.Contains(followed[0].Status.Options, "namespace")
		})
	}
	f.eventually("ready", func() bool { return ready("apples").Status == metav1.ConditionTrue })
	settings.Watches, settings.For = nil, watchOf("plum")
	f.install("plum")
	listed := make(chan struct{})
	f.cluster.Faults().Add(testcluster.Fault{Effect: testcluster.Hold(listed),
		Match: testcluster.Match{Verbs: testcluster.Reads, Resource: "plums"}})
	ensure("plums", settings)
	f.eventually("the first list", func() bool { return ready("plums").Reason == "Syncing" })
	settings.Watches = []Watch{watchOf("cherry")}
	ensure("plums", settings)
	f.eventually("the missing type", func() bool { return ready("plums").Reason == "Waiting" })
	settings.Watches = nil
	ensure("plums", settings)
	close(listed)
	f.eventually("the end of the list", func() bool { return ready("plums").Reason == "Running" })
	blocked, release := make(chan struct{}), make(chan struct{})
	blocking := Settings{For: watchOf("apple"), Reconciler: reconcile.Func(
		func(context.Context, reconcile.Request) (reconcile.Result, error) {
			blocked <- struct{}{}
			<-release
			return reconcile.Result{}, nil
		})}
	ensure("blocked", blocking)
	<-blocked
	f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: b}}")
	if got := <-requests; got.Name != "b" {
		t.Errorf("beside a blocked controller, reconciled %v, want b", got)
	}
	f.eventually("a request that waits", func() bool {
		s, _ := f.all.Status("blocked")
		return s.QueueLength == 1
	})
	blocking.MaxConcurrent = 2
	ensure("blocked", blocking)
	<-blocked
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.all.Stop(ended, "blocked")
	if !errors.Is(err, context.Canceled) || ready("blocked").Reason != "Stopping" {
		t.Errorf("Stop() of a blocked controller = %v, %v", err, ready("blocked"))
	}
	if err := f.all.Ensure(ended, "blocked", settings); !errors.Is(err, context.Canceled) {
		t.Errorf("Ensure() of a blocked controller that is being stopped = %v", err)
	}
	again := make(chan error)
	go func() { again <- f.all.Ensure(t.Context(), "blocked", settings) }() // ended by release
	select {
	case err := <-again:
		t.Errorf("Ensure() during Stop() = %v before the end of the reconcile", err)
	default:
	}
	close(release)
	if err := <-again; err != nil || ready("blocked").Reason == "Stopping" {
		t.Errorf("Ensure() during Stop() = %v, %v", err, ready("blocked"))
	}
	if err := errors.Join(f.all.Stop(t.Context(), "blocked"), f.all.Stop(t.Context(), "blocked")); err != nil {
		t.Error(err)
	}
	ensure("blocked", settings)
}

// TestEnsureErrors verifies that the status names watches that cannot be added or changed, until they can,
// and that Ensure with equal settings tries again.
func TestEnsureErrors(t *testing.T) {
	f := newFixture(t, Options{})
	f.install("apple")
	f.awaitStart()
	settings := Settings{For: watchOf("apple"), Reconciler: &requestLog{counts: map[string]int{}}}
	expect := func(reason, message string) {
		t.Helper()
		f.eventually(reason, func() bool {
			s, _ := f.all.Status("apples")
			return s.Ready.Reason == reason && strings.Contains(s.Ready.Message, message)
		})
	}
	noPattern := watchOf("pear")
	noPattern.Version = "["
	settings.Watches = []Watch{noPattern}
	for range 2 {
		if err := f.all.Ensure(t.Context(), "apples", settings); err == nil {
			t.Error("Ensure() of a watch that cannot be added = nil, want an error")
		}
		expect("Waiting", `"[" is not a pattern`)
	}
	settings.Watches = nil
	for _, step := range []struct {
		namespaces      []string
		reason, message string
	}{{[]string{"web"}, "Running", ""}, {nil, "Waiting", "apple.example.com: "},
		{[]string{"web"}, "Running", ""}} {
		settings.For.Options = &dynamicinformer.ResourceOptions{
			Namespaces: dynamicinformer.InNamespaces(step.namespaces...)}
		if err := f.all.Ensure(t.Context(), "apples", settings); err != nil {
			t.Error(err)
		}
		expect(step.reason, step.message)
	}
}
