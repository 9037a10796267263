package delivery

import (
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/controllerruntime"
	"github.com/crdcache/crdcache/indexers"
)

//go:embed indexes.yaml
var indexes []byte

// managedBy is the label of the ConfigMaps that the operator writes, by which its cache leaves out all others.
const managedBy = "app.kubernetes.io/managed-by"

// NewManager returns a manager that delivers Workloads. The options say how it elects a leader, where it serves metrics,
// and whatever else is for the program to say; those of the scheme and the cache are set here.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	indexConfig, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: indexes})
	if err != nil {
		return nil, err
	}
	options.Scheme = runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(options.Scheme))
	utilruntime.Must(AddToScheme(options.Scheme))
	options.NewCache = controllerruntime.NewCacheFunc(controllerruntime.Options{Indexes: indexConfig})
	options.Cache = cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{managedBy: string(fieldOwner)})},
		},
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	shared, ok := mgr.GetCache().(*controllerruntime.Cache)
	if !ok {
		return nil, fmt.Errorf("the manager's cache is a %T", mgr.GetCache())
	}
	reconciler := &WorkloadReconciler{client: mgr.GetClient(), routes: &Routes{factory: shared.Factory()}}
	return mgr, reconciler.SetupWithManager(mgr)
}
