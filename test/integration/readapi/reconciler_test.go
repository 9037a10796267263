package readapi_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/test/testcluster"
)

// Copier maintains a Secret with the data of each ConfigMap.
type Copier struct{ client.Client }

func (c *Copier) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var from corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &from); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	to := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: from.Name, Namespace: from.Namespace}}
	_, err := ctrl.CreateOrUpdate(ctx, c.Client, &to, func() error {
		to.Data = map[string][]byte{}
		for key, value := range from.Data {
			to.Data[key] = []byte(value)
		}
		return ctrl.SetControllerReference(&from, &to, c.Scheme())
	})
	return ctrl.Result{}, err
}

func TestCopier(t *testing.T) {
	ctx := t.Context()
	from := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"},
		Data: map[string]string{"k": "v"}}
	cluster, err := testcluster.New(ctx, testcluster.Options{Scheme: clientscheme.Scheme,
		Objects: []runtime.Object{from}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Config(), client.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Faults().Add(testcluster.Fault{
		Match: testcluster.Match{Verbs: []string{"create"}, Resource: "secrets"}, Times: 1,
		Effect: testcluster.Fail(),
	})
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(from)}
	if _, err := (&Copier{c}).Reconcile(ctx, request); !apierrors.IsInternalError(err) {
		t.Errorf("an error of the server became %v", err)
	}
	if _, err := (&Copier{c}).Reconcile(ctx, request); err != nil {
		t.Fatal(err)
	}
	var secret corev1.Secret
	if err := c.Get(ctx, request.NamespacedName, &secret); err != nil || string(secret.Data["k"]) != "v" ||
		metav1.GetControllerOf(&secret) == nil {
		t.Errorf("the secret is %v, %v", secret, err)
	}
}

func TestCopierInManager(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cluster, err := testcluster.New(ctx, testcluster.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := ctrl.NewManager(cluster.Config(), ctrl.Options{
		Scheme: clientscheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		Complete(&Copier{manager.GetClient()})
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
	from := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	must(t, manager.GetClient().Create(ctx, from))
	if event := <-secrets.ResultChan(); event.Type != "ADDED" {
		t.Errorf("the watch of secrets sent %s, want ADDED", event.Type)
	}
}
