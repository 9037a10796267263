package controllers_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/controllerruntime/controllers"
	"github.com/crdcache/crdcache/test/testcluster"
)

// Start and stop a controller while the manager runs.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cluster, err := testcluster.New(ctx, testcluster.Options{})
	must(err)
	manager, err := ctrl.NewManager(cluster.Config(), ctrl.Options{NewCache: controllerruntime.NewCache,
		Metrics: metricsserver.Options{BindAddress: "0"}})
	must(err)
	all, err := controllers.New(manager, controllers.Options{})
	must(err)
	go func() { must(manager.Start(ctx)) }() // ended by cancel

	names := make(chan string)
	must(all.Ensure(ctx, "namespaces", controllers.Settings{
		For: controllers.Watch{Type: controllers.Type{GroupKind: schema.GroupKind{Kind: "Namespace"}}},
		Reconciler: reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "default" {
				names <- r.Name
			}
			return reconcile.Result{}, nil
		}),
	}))
	fmt.Println(<-names)
	must(all.Stop(ctx, "namespaces"))
	// Output: default
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
