package controllerruntime

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestManagerInMemory verifies that a manager with our cache reconciles on an in-memory cluster, as in an
// operator's tests.
func TestManagerInMemory(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cluster, err := testcluster.New(ctx, testcluster.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := ctrl.NewManager(cluster.Config(), ctrl.Options{
		Scheme: clientscheme.Scheme, NewCache: NewCache, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // for -count
	})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		Complete(reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var from corev1.ConfigMap
			if err := manager.GetClient().Get(ctx, r.NamespacedName, &from); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			to := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: from.Name, Namespace: from.Namespace}}
			_, err := ctrl.CreateOrUpdate(ctx, manager.GetClient(), &to, func() error {
				to.Data = map[string][]byte{"k": []byte(from.Data["k"])}
				return ctrl.SetControllerReference(&from, &to, manager.GetScheme())
			})
			return ctrl.Result{}, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error)
	go func() { stopped <- manager.Start(ctx) }() // ended by cancel
	defer func() { cancel(); <-stopped }()

	secrets, err := cluster.Client().Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Watch(ctx,
		metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer secrets.Stop()
	from := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"},
		Data: map[string]string{"k": "v"}}
	if err := manager.GetClient().Create(ctx, from); err != nil {
		t.Fatal(err)
	}
	if event := <-secrets.ResultChan(); event.Type != "ADDED" {
		t.Errorf("the watch of Secrets sent %s, want ADDED", event.Type)
	}
	// The controller recreates a deleted owned object.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	if err := manager.GetClient().Delete(ctx, secret); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DELETED", "ADDED"} {
		if event := <-secrets.ResultChan(); string(event.Type) != want {
			t.Errorf("event of secrets: %s, want %s", event.Type, want)
		}
	}
}
