package serving_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/controllerruntime"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestManagers runs a manager that reads from caches, by each kind of cache of its own, and writes to the cluster.
func TestManagers(t *testing.T) {
	widgets := installWidgets(t)
	server := startProcess(t, configMaps, widgets)
	for name, newCache := range map[string]cache.NewCacheFunc{"stock": cache.New, "controllerruntime": controllerruntime.NewCache} {
		t.Run(name, func(t *testing.T) {
			namespace := harness.Namespace(t)
			answers := &answers{by: map[string]int{}}
			config := server.config()
			config.Wrap(answers.wrap)
			runManager(t, config, newCache, &copier{widgets: widgets.GroupVersion().WithKind("Widget"), namespace: namespace})
			objects := admin(t).Resource(widgets).Namespace(namespace)
			created, err := objects.Create(t.Context(), object(widgets, "a", "1"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			awaitCopy(t, namespace, "1")
			created.SetLabels(map[string]string{"value": "2"})
			if _, err := objects.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitCopy(t, namespace, "2")
			if answers.served() == 0 {
				t.Errorf("nothing was answered by the cache: %v", answers.by)
			}
		})
	}
}

// awaitCopy waits until the config map of the only widget has its value.
func awaitCopy(t *testing.T, namespace, want string) {
	t.Helper()
	harness.Eventually(t, func(ctx context.Context) error {
		o, err := admin(t).Resource(configMaps).Namespace(namespace).Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(o.Object, "data", "value"); got != want {
			return fmt.Errorf("the copy has %q, want %q", got, want)
		}
		return nil
	})
}

// runManager runs a manager until the test ends.
func runManager(t *testing.T, config *rest.Config, newCache cache.NewCacheFunc, c *copier) {
	t.Helper()
	cluster := harness.Config(t)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		NewCache: newCache, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{c.namespace: {}}},
		NewClient: func(_ *rest.Config, options client.Options) (client.Client, error) {
			options.HTTPClient = nil // it is that of the other configuration
			return client.New(cluster, options)
		},
	})
	if err == nil {
		c.Client = manager.GetClient()
		widget := &unstructured.Unstructured{}
		widget.SetGroupVersionKind(c.widgets)
		skip := true // the name of a controller is used in each case
		err = ctrl.NewControllerManagedBy(manager).For(widget).Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}).
			WithOptions(controller.Options{SkipNameValidation: &skip}).Complete(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by cancel
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// copier is a reconciler that copies the value of each widget into a config map.
type copier struct {
	client.Client
	widgets   schema.GroupVersionKind
	namespace string
}

// Reconcile implements reconcile.Reconciler.
func (c *copier) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(c.widgets)
	if err := c.Get(ctx, r.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	kept := &corev1.ConfigMap{}
	err := c.Get(ctx, r.NamespacedName, kept)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	value := widget.GetLabels()["value"]
	if err == nil && kept.Data["value"] == value {
		return ctrl.Result{}, nil
	}
	kept.Namespace, kept.Name, kept.Data = r.Namespace, r.Name, map[string]string{"value": value}
	if kept.ResourceVersion == "" {
		return ctrl.Result{}, c.Create(ctx, kept)
	}
	return ctrl.Result{}, c.Update(ctx, kept)
}
