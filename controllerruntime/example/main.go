// Command example runs the sample operator in the package delivery.
//
//	kubectl apply -f ../../testdata/crds/workloads.yaml \
//	  -f ../../testdata/crds/environments.yaml -f ../../testdata/crds/releases.yaml
//	go run . -leader-election-namespace default
//
// With -sharded, the replicas share the Workloads and elect no leader; -leader-election-namespace is then
// required. Routes can be installed while it runs.
package main

import (
	"flag"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/controllerruntime/example/delivery"
	"github.com/crdcache/crdcache/shard"
)

func main() {
	namespace := flag.String("leader-election-namespace", "",
		"the `namespace` of the Leases; default: the namespace of the pod")
	sharded := flag.Bool("sharded", false,
		"share the Workloads with the other replicas instead of electing a leader")
	metricsAddress := flag.String("metrics-address", ":8080",
		"the `address` to serve metrics on; 0 disables them")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	start := run
	if *sharded {
		start = runSharded
	}
	if err := start(*namespace, *metricsAddress); err != nil {
		klog.Background().Error(err, "Failed to run the operator")
		os.Exit(1)
	}
}

func run(namespace, metricsAddress string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := delivery.NewManager(config, ctrl.Options{
		LeaderElection:          true,
		LeaderElectionID:        "delivery.demo.crdcache.dev",
		LeaderElectionNamespace: namespace,
		// The program exits after the manager, so another replica need not wait for the Lease to expire.
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: metricsAddress},
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func runSharded(namespace, metricsAddress string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	member, err := shard.New(shard.Options{Config: config, Namespace: namespace, Name: "delivery"})
	if err != nil {
		return err
	}
	mgr, err := delivery.NewShardedManager(config,
		ctrl.Options{Metrics: metricsserver.Options{BindAddress: metricsAddress}}, member)
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
