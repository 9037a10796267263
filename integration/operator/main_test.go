// Package operator_test runs the operator in package delivery on a real API server. It
// tests the function of the operator, missing and deleted types, and its cost over a long time.
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
