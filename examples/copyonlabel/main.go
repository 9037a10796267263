// Command copyonlabel copies objects with a label to the namespace in the label. A ConfigMap lists their
// kinds, which need not be installed.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/controllerruntime/controllers"
	"github.com/crdcache/crdcache/dynamicinformer"
)

const (
	configName  = "copied-kinds" // has the kinds in "kinds": "Secret Widget.example.com"
	targetLabel = "example.com/copy-to"
	originLabel = "example.com/copy-of"
)

func main() {
	ctrl.SetLogger(klog.Background())
	ctx := ctrl.SetupSignalHandler()
	manager, err := newManager(ctx, ctrl.GetConfigOrDie(), ctrl.Options{})
	if err == nil {
		err = manager.Start(ctx)
	}
	if err != nil {
		ctrl.Log.Error(err, "Failed to run the manager")
		os.Exit(1)
	}
}

type operator struct {
	ctrl.Manager
	controllers *controllers.Controllers
}

// newManager returns a manager with the controllers.
func newManager(ctx context.Context, config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	options.NewCache = controllerruntime.NewCache
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	all, err := controllers.New(manager, controllers.Options{Workers: 10})
	if err != nil {
		return nil, err
	}
	o := &operator{manager, all}
	return manager, all.Ensure(ctx, configName, controllers.Settings{
		For: controllers.Watch{Type: controllers.Type{GroupKind: schema.GroupKind{Kind: "ConfigMap"}},
			Options: &dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces("default"),
				FieldSelector: fields.OneTermEqualSelector("metadata.name", configName)}},
		Reconciler: reconcile.Func(o.reconcileKinds)})
}

// reconcileKinds runs a controller for each kind of the ConfigMap, and stops the others.
func (o *operator) reconcileKinds(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	config := &corev1.ConfigMap{}
	err := o.GetAPIReader().Get(ctx, request.NamespacedName, config)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	selector, err := labels.Parse(targetLabel)
	labelled := &dynamicinformer.ResourceOptions{LabelSelector: selector}
	names := map[string]bool{configName: true}
	for _, kind := range strings.Fields(config.Data["kinds"]) {
		names[kind] = true
		k := &copier{o, kind, controllers.Type{GroupKind: schema.ParseGroupKind(kind)}}
		settings := controllers.Settings{For: controllers.Watch{Type: k.of, Options: labelled}, Reconciler: k}
		err = errors.Join(err, o.controllers.Ensure(ctx, kind, settings))
	}
	for _, running := range o.controllers.All() {
		if !names[running.Name] {
			err = errors.Join(err, o.controllers.Stop(ctx, running.Name))
		}
	}
	return ctrl.Result{}, err
}

// copier reconciles the copies of the objects of a kind.
type copier struct {
	*operator
	name string
	of   controllers.Type
}

// Reconcile makes the copy of an object, and deletes its other copies.
func (c *copier) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	kind, _ := c.controllers.Kind(c.of) // its version can change
	object, copies := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(kind)
	copies.SetGroupVersionKind(kind)
	if err = client.IgnoreNotFound(c.GetClient().Get(ctx, request.NamespacedName, object)); err != nil {
		return result, err
	}
	origin := labels.Set{originLabel: fmt.Sprintf("%x", sha256.Sum224([]byte(request.String())))}
	target := object.GetLabels()[targetLabel]
	if target == "" {
		c.controllers.Unselect(c.name, request.NamespacedName)
	} else {
		// A change of a copy enqueues the object.
		err = errors.Join(c.copy(ctx, object, target, origin), c.controllers.Select(c.name, c.of,
			request.NamespacedName, controllers.Objects{Labels: origin.AsSelector()}))
	}
	err = errors.Join(err, c.GetClient().List(ctx, copies, client.MatchingLabels(origin)))
	for i := range copies.Items {
		if o := &copies.Items[i]; o.GetNamespace() != target {
			err = errors.Join(err, client.IgnoreNotFound(c.GetClient().Delete(ctx, o)))
		}
	}
	return result, err
}

// copy writes the copy, unless it is equal already.
func (c *copier) copy(ctx context.Context, object *unstructured.Unstructured, namespace string,
	origin labels.Set) error {
	written := &unstructured.Unstructured{}
	written.SetGroupVersionKind(object.GroupVersionKind())
	written.SetNamespace(namespace)
	written.SetName(object.GetName())
	_, err := controllerutil.CreateOrUpdate(ctx, c.GetClient(), written, func() error {
		if written.GetUID() != "" && written.GetLabels()[originLabel] != origin[originLabel] {
			return fmt.Errorf("%s/%s exists and is no copy of this object", namespace, object.GetName())
		}
		former := written.Object
		written.Object = object.DeepCopy().Object
		written.Object["metadata"] = former["metadata"]
		if delete(written.Object, "status"); former["status"] != nil {
			written.Object["status"] = former["status"]
		}
		written.SetLabels(origin)
		return nil
	})
	return err
}
