// Package operator_test runs an operator on a real API server. The operator is built on controller-runtime
// with crdcache as its cache. It delivers the Workloads of the demo platform (testdata/crds): it writes the
// settings of each into a ConfigMap, and reports progress in its status. It uses features that small examples
// omit:
//
//   - NewManager, NewShardedManager: a selector, indexes from YAML, leader election or shards;
//   - WorkloadReconciler: a finalizer and server-side apply;
//   - Routes: types that may be missing, and may be installed and removed while the operator runs.
//
// The tests cover the function of the operator, missing and deleted types, and its cost over a long time.
package operator_test

import (
	"flag"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdcache/crdcache/integration/harness"
)

var duration = flag.Duration("duration", 20*time.Second, "how long the soak goes on")

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	harness.Main(m)
}
