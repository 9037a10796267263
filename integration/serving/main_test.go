// Package serving_test runs stock clients against caches of a real API server that are served as a Kubernetes API: client-go's
// informers, controller-runtime's managers, and clients that change between the API server and two such servers while all of
// them are killed.
package serving_test

import (
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) {
	if os.Getenv(envAddress) != "" {
		os.Exit(serve())
	}
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	harness.Main(m)
}
