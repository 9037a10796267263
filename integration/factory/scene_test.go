package factory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

const (
	// patience is how long a test waits for what must happen: far more than it takes.
	patience = 90 * time.Second
	// soon is how long a shutdown may take. It takes milliseconds where nothing is wrong, and up to a
	// minute where something waits for a dead server.
	soon = 10 * time.Second
)

// scene is a factory under test, an admin who changes things behind its back, and a type of its own.
type scene struct {
	*testing.T
	ctx     context.Context
	admin   dynamic.Interface
	factory *dynamicinformer.Factory
	widgets schema.GroupVersionResource
	ns      string
}

// newScene installs the widgets and makes a factory, with the admin's configuration where options have none.
// The factory is shut down when the test ends.
func newScene(t *testing.T, options dynamicinformer.Options) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience) // t.Context ends before the cleanups
	t.Cleanup(cancel)
	admin, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, ctx: ctx, admin: admin, ns: harness.Namespace(t)}
	s.widgets = schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "widgets"}
	harness.InstallCRDs(t, harness.NewCRD(s.widgets.Group, "Widget"))
	s.factory = newFactory(t, ctx, options)
	return s
}

func newFactory(t *testing.T, ctx context.Context, options dynamicinformer.Options) *dynamicinformer.Factory {
	t.Helper()
	if options.Config == nil {
		options.Config = harness.Config(t)
	}
	factory, err := dynamicinformer.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := factory.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return factory
}

// follow asks for the informer of a type, records what a handler sees, and starts it.
func (s *scene) follow(gvr schema.GroupVersionResource) (*dynamicinformer.Informer, *journal) {
	s.Helper()
	i, err := s.factory.ForResource(gvr)
	if err != nil {
		s.Fatal(err)
	}
	j := newJournal(s.T, s.ctx)
	if _, err := i.AddEventHandler(j); err != nil {
		s.Fatal(err)
	}
	if err := s.factory.Start(s.ctx); err != nil {
		s.Fatal(err)
	}
	return i, j
}

// sync waits until all types are synced.
func (s *scene) sync() {
	s.Helper()
	if _, err := s.factory.WaitForSync(s.ctx); err != nil {
		s.Fatal(err)
	}
}

// await waits for a state and a reason.
func (s *scene) await(i *dynamicinformer.Informer, state status.State, reason status.Reason) {
	s.Helper()
	harness.Eventually(s, func(context.Context) error {
		if status := i.Status(); status.State != state || status.Reason != reason {
			return fmt.Errorf("the status is %+v, want %s (%s)", status, state, reason)
		}
		return nil
	})
}

// widget is an object of the scene's type.
func (s *scene) widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.widgets.GroupVersion().String(), "kind": "Widget",
		"metadata": map[string]any{"namespace": s.ns, "name": name},
		"spec":     map[string]any{"size": size},
	}}
}

// put creates or changes a widget.
func (s *scene) put(name string, size int64) {
	s.Helper()
	_, err := s.admin.Resource(s.widgets).Namespace(s.ns).Apply(s.ctx, name, s.widget(name, size), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) delete(name string) {
	s.Helper()
	if err := s.admin.Resource(s.widgets).Namespace(s.ns).Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// expectMirror checks that the cache of a type holds what a list of all namespaces returns, field by field.
func (s *scene) expectMirror(i *dynamicinformer.Informer) {
	s.Helper()
	expectMirror(s.T, s.admin, i)
}

func expectMirror(t *testing.T, client dynamic.Interface, i *dynamicinformer.Informer) {
	t.Helper()
	list, err := client.Resource(i.GVR()).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	for _, o := range list.Items {
		want[key(&o)] = o.Object
	}
	got := map[string]any{}
	for _, o := range i.GetStore().List() {
		u := o.(*unstructured.Unstructured)
		got[key(u)] = u.Object
	}
	diff(t, i.GVR().String()+" in the cache", want, got)
}

func key(o *unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }

func newClient(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
