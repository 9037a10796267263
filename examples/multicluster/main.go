// Command multicluster is an operator for many clusters with multicluster-runtime. Each Secret with a label
// has the kubeconfig of a cluster. In each cluster, the operator writes the name of the cluster into the
// labelled ConfigMaps. The caches of the clusters share one memory budget.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/metrics"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// A ConfigMap with requestLabel gets the annotation.
const (
	requestLabel = "example.com/cluster-name"
	annotation   = "example.com/cluster"
)

func main() {
	ctrl.SetLogger(klog.Background())
	ctx := ctrl.SetupSignalHandler()
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{MemoryBudget: 512 << 20})
	if err == nil {
		ctrlmetrics.Registry.MustRegister(metrics.NewGroupCollector(group))
		var manager mcmanager.Manager
		manager, err = newManager(ctx, group, ctrl.GetConfigOrDie(), ctrl.Options{},
			kubeconfig.Options{Namespace: "default"})
		if err == nil {
			err = manager.Start(ctx)
		}
	}
	if err != nil {
		ctrl.Log.Error(err, "Failed to run the manager")
		os.Exit(1)
	}
}

// newManager returns a manager whose caches belong to a group, and with the controller.
func newManager(ctx context.Context, group *dynamicinformer.Group, config *rest.Config, options ctrl.Options,
	secrets kubeconfig.Options) (mcmanager.Manager, error) {
	newCache := controllerruntime.NewCacheFunc(controllerruntime.Options{Group: group})
	options.NewCache = newCache
	secrets.ClusterOptions = append(secrets.ClusterOptions,
		func(o *cluster.Options) { o.NewCache = newCache })
	provider := kubeconfig.New(secrets)
	manager, err := mcmanager.New(config, provider, options)
	if err != nil {
		return nil, err
	}
	if err := provider.SetupWithManager(ctx, manager); err != nil {
		return nil, err
	}
	return manager, mcbuilder.ControllerManagedBy(manager).Named("cluster-names").For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(reconciler{manager}.reconcile))
}

type reconciler struct{ mcmanager.Manager }

func (r reconciler) reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	memberCluster, err := r.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return ctrl.Result{}, err
	}
	config := &corev1.ConfigMap{}
	if err := memberCluster.GetClient().Get(ctx, request.NamespacedName, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	name := string(request.ClusterName)
	if config.Labels[requestLabel] == "" || config.Annotations[annotation] == name {
		return ctrl.Result{}, nil
	}
	before := config.DeepCopy()
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, annotation, name)
	ctrl.LoggerFrom(ctx).Info("Writing the name of the cluster")
	return ctrl.Result{}, client.IgnoreNotFound(memberCluster.GetClient().Patch(ctx, config,
		client.MergeFrom(before)))
}
