// Command manager is an operator with controller-runtime. It annotates the pod template of each Deployment
// with a hash of the mounted ConfigMaps, so that a change of a ConfigMap rolls the pods.
package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/indexers"
)

const annotation = "example.com/mounted"

//go:embed indexes.yaml
var indexes []byte

func main() {
	ctrl.SetLogger(klog.Background())
	manager, err := newManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err == nil {
		err = manager.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		ctrl.Log.Error(err, "Failed to run the manager")
		os.Exit(1)
	}
}

// newManager returns a manager with crdcache as its cache, and with the controller.
func newManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	indexConfig, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: indexes})
	if err != nil {
		return nil, err
	}
	options.NewCache = controllerruntime.NewCacheFunc(controllerruntime.Options{Indexes: indexConfig})
	options.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	r := &reconciler{manager.GetClient()}
	return manager, ctrl.NewControllerManagedBy(manager).
		For(&appsv1.Deployment{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.findMountingDeployments)).
		Complete(r)
}

type reconciler struct{ client.Client }

// Reconcile reads only from the cache, and sends a request only if the annotation is wrong.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, request.NamespacedName, deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	hash, mountsConfigMap := sha256.New(), false
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		mountsConfigMap = true
		config, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: request.Namespace,
			Name: volume.ConfigMap.Name}
		if err := r.Get(ctx, key, config); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		content := []any{key.Name, config.Data, config.BinaryData} // JSON orders the keys of maps
		if err := json.NewEncoder(hash).Encode(content); err != nil {
			return ctrl.Result{}, err
		}
	}
	checksum := fmt.Sprintf("%x", hash.Sum(nil))
	if !mountsConfigMap || deployment.Spec.Template.Annotations[annotation] == checksum {
		return ctrl.Result{}, nil
	}
	before := deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, annotation, checksum)
	ctrl.LoggerFrom(ctx).Info("Rolling the pods")
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, deployment, client.MergeFrom(before)))
}

// findMountingDeployments returns the Deployments that mount a ConfigMap. It reads an index and decodes no
// Deployment.
func (r *reconciler) findMountingDeployments(ctx context.Context, config client.Object) []reconcile.Request {
	deployments := &metav1.PartialObjectMetadataList{}
	deployments.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	if err := r.List(ctx, deployments, client.InNamespace(config.GetNamespace()),
		client.MatchingFields{"mounted": config.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the Deployments of a ConfigMap")
		return nil
	}
	var requests []reconcile.Request
	for i := range deployments.Items {
		requests = append(requests,
			reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&deployments.Items[i])})
	}
	return requests
}
