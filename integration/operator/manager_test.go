package operator_test

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
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/shard"
)

//go:embed indexes.yaml
var indexes []byte

// managedBy is the label of the operator's ConfigMaps. The cache selects by it.
const managedBy = "app.kubernetes.io/managed-by"

// NewManager returns a manager that delivers Workloads. options has the leader election, the metrics
// address and so on; NewManager sets the scheme and the cache.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	return newManager(config, options, nil)
}

// NewShardedManager returns a manager that delivers the Workloads of the shards assigned to it. It needs no
// leader election. Workloads are sharded by UID; each replica caches all objects of other types.
func NewShardedManager(config *rest.Config, options ctrl.Options,
	assigner shard.Assigner) (ctrl.Manager, error) {
	sharding, err := controllerruntime.NewSharding(controllerruntime.ShardingOptions{
		Assigner: assigner, Key: sharding.ByUID, Objects: []client.Object{&Workload{}},
	})
	if err != nil {
		return nil, err
	}
	return newManager(config, options, sharding)
}

func newManager(config *rest.Config, options ctrl.Options,
	sharding *controllerruntime.Sharding) (ctrl.Manager, error) {
	indexConfig, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: indexes})
	if err != nil {
		return nil, err
	}
	options.Scheme = runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(options.Scheme))
	utilruntime.Must(AddToScheme(options.Scheme))
	options.NewCache = controllerruntime.NewCacheFunc(controllerruntime.Options{Indexes: indexConfig,
		Sharding: sharding})
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
	if sharding != nil {
		if err := mgr.Add(sharding); err != nil {
			return nil, err
		}
	}
	return mgr, reconciler.setup(mgr, sharding)
}
