package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/controllerruntime"
)

const (
	// finalizer protects a Workload while it has an unfinished Release.
	finalizer = "delivery.demo.crdcache.dev/releases"
	// fieldOwner is the field manager of the operator.
	fieldOwner = client.FieldOwner("delivery")
)

// WorkloadReconciler delivers Workloads. It reads everything from the cache, so a reconcile without changes
// sends no request to the API server.
type WorkloadReconciler struct {
	client client.Client
	routes *Routes
}

// setup adds the controller to a manager. With sharding, it reconciles only the Workloads of the replica's
// shards. Types that are not sharded enqueue Workloads of all shards, and the Sharding drops the Workloads of
// other shards.
func (r *WorkloadReconciler) setup(mgr ctrl.Manager, sharding *controllerruntime.Sharding) error {
	var reconciler reconcile.Reconciler = r
	if sharding != nil {
		reconciler = sharding.Reconciler(&Workload{}, r)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&Workload{}).
		// They are written but never read, so metadata is enough.
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Watches(&Environment{}, handler.EnqueueRequestsFromMapFunc(r.workloadsIn)).
		Watches(&Release{}, handler.EnqueueRequestsFromMapFunc(workloadOf)).
		WatchesRawSource(r.routes.Source()).
		Complete(reconciler)
}

func (r *WorkloadReconciler) Reconcile(ctx context.Context,
	request reconcile.Request) (reconcile.Result, error) {
	workload := &Workload{}
	if err := r.client.Get(ctx, request.NamespacedName, workload); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !workload.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.finalize(ctx, workload)
	}
	if before := workload.DeepCopy(); controllerutil.AddFinalizer(workload, finalizer) {
		if err := r.patch(ctx, before, workload); err != nil {
			return reconcile.Result{}, err
		}
	}
	environment := &Environment{}
	err := r.client.Get(ctx, types.NamespacedName{Name: workload.Spec.Environment}, environment)
	switch {
	case apierrors.IsNotFound(err):
		environment = nil
	case err != nil:
		return reconcile.Result{}, err
	default:
		if err := r.applySettings(ctx, workload, environment); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, r.applyStatus(ctx, workload, environment)
}

// finalize removes the finalizer, unless a Release is unfinished. The end of that Release enqueues the
// Workload again.
func (r *WorkloadReconciler) finalize(ctx context.Context, workload *Workload) error {
	before := workload.DeepCopy()
	if !controllerutil.RemoveFinalizer(workload, finalizer) {
		return nil
	}
	releases := &ReleaseList{}
	err := r.client.List(ctx, releases, client.InNamespace(workload.Namespace),
		client.MatchingFields{"holds": workload.Name}, client.Limit(1))
	if err != nil || len(releases.Items) > 0 {
		return err
	}
	return r.patch(ctx, before, workload)
}

// patch writes the changes. It fails on concurrent writes, because a merge patch replaces lists such as the
// finalizers.
func (r *WorkloadReconciler) patch(ctx context.Context, before, after *Workload) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.client.Patch(ctx, after, patch, fieldOwner))
}

// applySettings writes the settings of a Workload into a ConfigMap of the same name.
func (r *WorkloadReconciler) applySettings(ctx context.Context, workload *Workload,
	environment *Environment) error {
	settings := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"namespace": workload.Namespace,
			"name":      workload.Name,
			"labels":    map[string]any{managedBy: string(fieldOwner)},
		},
		"data": map[string]any{
			"image":  workload.Spec.Image,
			"stage":  environment.Spec.Stage,
			"region": environment.Spec.Region,
		},
	}}
	if err := controllerutil.SetControllerReference(workload, settings, r.client.Scheme()); err != nil {
		return err
	}
	return r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(settings), fieldOwner,
		client.ForceOwnership)
}

// applyStatus applies the status of a Workload if it has changed. A nil environment means that it does not
// exist.
func (r *WorkloadReconciler) applyStatus(ctx context.Context, workload *Workload,
	environment *Environment) error {
	status := r.status(workload, environment)
	if status.equals(workload.Status) {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return err
	}
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": GroupVersion.String(),
		"kind":       "Workload",
		"metadata":   map[string]any{"namespace": workload.Namespace, "name": workload.Name},
		"status":     fields,
	}}
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), fieldOwner,
		client.ForceOwnership)
	return client.IgnoreNotFound(err)
}

func (r *WorkloadReconciler) status(workload *Workload, environment *Environment) WorkloadStatus {
	phase := "Running"
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Delivered",
		Message: "the settings are written"}
	switch {
	case environment == nil:
		phase = "Pending"
		ready.Status, ready.Reason = metav1.ConditionFalse, "EnvironmentNotFound"
		ready.Message = fmt.Sprintf("environment %q not found", workload.Spec.Environment)
	case workload.Spec.Paused:
		phase = "Suspended"
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Paused", "the workload is paused"
	}
	routed := metav1.Condition{Type: "Routed", Status: metav1.ConditionFalse, Reason: "NoRoute",
		Message: "no route leads here"}
	if hosts := r.routes.Hosts(client.ObjectKeyFromObject(workload)); len(hosts) > 0 {
		routed.Status, routed.Reason, routed.Message = metav1.ConditionTrue, "Routed",
			strings.Join(hosts, ", ")
	}
	status := WorkloadStatus{ObservedGeneration: workload.Generation, Phase: phase,
		Conditions: []metav1.Condition{ready, routed}}
	status.setTimes(workload.Status)
	return status
}

// workloadsIn returns the Workloads of an Environment. It needs only their names, so nothing is decoded.
func (r *WorkloadReconciler) workloadsIn(ctx context.Context, environment client.Object) []reconcile.Request {
	workloads := &metav1.PartialObjectMetadataList{}
	workloads.SetGroupVersionKind(GroupVersion.WithKind("WorkloadList"))
	if err := r.client.List(ctx, workloads,
		client.MatchingFields{"environment": environment.GetName()}); err != nil {
		if !errors.Is(err, context.Canceled) {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list the workloads of an environment", "environment",
				environment.GetName())
		}
		return nil
	}
	requests := make([]reconcile.Request, len(workloads.Items))
	for i := range workloads.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&workloads.Items[i])
	}
	return requests
}

func workloadOf(_ context.Context, object client.Object) []reconcile.Request {
	release := object.(*Release)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: release.Namespace,
		Name: release.Spec.Workload}}}
}
