package controllers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/test/testcluster"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

type fixture struct {
	*testing.T
	cluster *testcluster.Cluster
	all     *Controllers
}

// newFixture returns the controllers of a running manager.
func newFixture(t *testing.T, workers int) *fixture {
	t.Helper()
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := ctrl.NewManager(cluster.Config(), ctrl.Options{NewCache: controllerruntime.NewCache,
		Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := New(manager, workers)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by the cleanup
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil || len(all.All()) > 0 {
			t.Errorf("Start() = %v, with %v left", err, all.All())
		}
	})
	f := &fixture{t, cluster, all}
	f.load("{apiVersion: v1, kind: Namespace, metadata: {name: web}}")
	return f
}

func (f *fixture) load(format string, args ...any) {
	f.Helper()
	u := &unstructured.Unstructured{}
	err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &u.Object)
	if err = errors.Join(err, f.cluster.Load(f.Context(), u)); err != nil {
		f.Fatal(err)
	}
}

// install creates the CRD of a kind, whose plural is the kind with s.
func (f *fixture) install(kind string) {
	f.load(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]ss.example.com},
spec: {group: example.com, scope: Namespaced, names: {plural: %[1]ss, kind: %[1]s}, versions: [{name: v1,
served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
		kind)
}

// objects returns a client for the objects of a kind.
func (f *fixture) objects(kind string) dynamic.ResourceInterface {
	return f.cluster.Client().Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: kind + "s"}).Namespace("web")
}

func (f *fixture) eventually(what string, done func() bool) {
	f.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("timed out waiting for %s; %+v", what, f.all.All())
		}
	}
}

// observer is a reconciler that records the version of each object on the server; "" if it is gone.
type observer struct {
	*fixture
	kind    string
	stopped atomic.Bool
	mu      sync.Mutex
	seen    map[string]string
}

func (o *observer) read(ctx context.Context, name string) (string, error) {
	u, err := o.objects(o.kind).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return u.GetResourceVersion(), nil
}

func (o *observer) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	if o.stopped.Load() {
		o.Errorf("%s: reconcile of %s after Stop", o.kind, r)
	}
	version, err := o.read(ctx, r.Name)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.seen[r.Name] = version
	}
	return reconcile.Result{}, err
}

// converged reports whether the controller has seen the present state of all objects.
func (o *observer) converged() bool {
	for n := range 4 {
		name := fmt.Sprint("o", n)
		version, err := o.read(o.Context(), name)
		o.mu.Lock()
		seen := o.seen[name]
		o.mu.Unlock()
		if err != nil || seen != version {
			return false
		}
	}
	return true
}

// TestHistories verifies that after random changes of types, objects and controllers, each running controller
// has seen the state of all objects of its type, and no stopped one is called.
func TestHistories(t *testing.T) {
	kinds := []string{"apple", "pear", "plum"}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f, random := newFixture(t, 2), rand.New(rand.NewPCG(seed, 1))
			running, installed := map[string]*observer{}, map[string]bool{}
			for step := range 80 {
				kind := kinds[random.IntN(len(kinds))]
				object := fmt.Sprint("o", random.IntN(4))
				switch k := running[kind]; random.IntN(8) {
				case 0:
					if installed[kind] = !installed[kind]; installed[kind] {
						f.install(kind)
					} else if err := f.cluster.Client().Resource(crds).Delete(t.Context(),
						kind+"s.example.com", metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				case 1, 2:
					if installed[kind] {
						// it may not exist
						_ = f.objects(kind).Delete(t.Context(), object, metav1.DeleteOptions{})
					}
				case 3:
					if k != nil {
						if err := f.all.Stop(t.Context(), kind); err != nil {
							t.Error(err)
						}
						k.stopped.Store(true)
						delete(running, kind)
					}
				case 4:
					if k == nil {
						k = &observer{fixture: f, kind: kind, seen: map[string]string{}}
						running[kind] = k
					}
					settings := Settings{For: Watch{GroupKind: schema.GroupKind{Group: "example.com", Kind: kind}},
						Reconciler: k}
					for _, other := range kinds[:random.IntN(len(kinds))] {
						settings.Watches = append(settings.Watches,
							Watch{GroupKind: schema.GroupKind{Group: "example.com", Kind: other}})
					}
					if err := f.all.Ensure(kind, settings); err != nil {
						t.Fatal(err)
					}
				default:
					if installed[kind] {
						f.load("{apiVersion: example.com/v1, kind: %s, metadata: {namespace: web, name: %s}, step: %d}", kind, object, step)
					}
				}
				if step%10 == 9 {
					for kind, k := range running {
						f.eventually(fmt.Sprintf("the controller of %s at step %d", kind, step), k.converged)
					}
				}
			}
		})
	}
}

// TestEnsure verifies that a changed controller keeps its watches, that owners are enqueued, that a blocked
// controller delays no other, and that the status has the reasons.
func TestEnsure(t *testing.T) {
	f := newFixture(t, 2)
	ready := func(name string) metav1.Condition {
		for _, s := range f.all.All() {
			if s.Name == name {
				return s.Ready
			}
		}
		return metav1.Condition{}
	}
	requests := make(chan types.NamespacedName, 100)
	apple, pear := schema.GroupKind{Group: "example.com", Kind: "apple"}, schema.GroupKind{Group: "example.com", Kind: "pear"}
	settings := Settings{For: Watch{GroupKind: apple}, Reconciler: reconcile.Func(
		func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			requests <- r.NamespacedName
			return reconcile.Result{}, nil
		})}
	ensure := func(name string, settings Settings) {
		t.Helper()
		if err := f.all.Ensure(name, settings); err != nil {
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
	settings.Watches = []Watch{{GroupKind: pear}}
	ensure("apples", settings)
	if got := <-requests; got != (types.NamespacedName{Namespace: "web", Name: "owner"}) {
		t.Errorf("after a change of the watches, reconciled %v, want only the owner", got)
	}
	f.eventually("ready", func() bool { return ready("apples").Status == metav1.ConditionTrue })
	blocked, release := make(chan struct{}), make(chan struct{})
	ensure("blocked", Settings{For: Watch{GroupKind: apple}, Reconciler: reconcile.Func(
		func(context.Context, reconcile.Request) (reconcile.Result, error) {
			close(blocked)
			<-release
			return reconcile.Result{}, nil
		})})
	<-blocked
	f.load("{apiVersion: example.com/v1, kind: apple, metadata: {namespace: web, name: b}}")
	if got := <-requests; got.Name != "b" {
		t.Errorf("beside a blocked controller, reconciled %v, want b", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.all.Stop(ended, "blocked")
	if !errors.Is(err, context.Canceled) || ready("blocked").Reason != "Stopping" || f.all.Ensure("blocked", settings) == nil {
		t.Errorf("Stop() of a blocked controller = %v, %v", err, ready("blocked"))
	}
	close(release)
	if err := errors.Join(f.all.Stop(t.Context(), "blocked"), f.all.Stop(t.Context(), "blocked")); err != nil {
		t.Error(err)
	}
	ensure("blocked", settings)
}
