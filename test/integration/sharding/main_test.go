// Package sharding_test runs replicas of an operator as processes that share objects through Leases on a real
// API server. They start, end, are killed, suspended and disconnected.
package sharding_test

import (
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var (
	objects = flag.Int("objects", 200, "the number of sharded objects")
	updates = flag.Int("updates", 50, "the number of updates per second")
	shards  = flag.Int("shards", 16, "the number of shards")
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if options, child := os.LookupEnv(childEnv); child {
		os.Exit(runChild(options))
	}
	harness.Main(m)
}
