package requests

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/testkit/leakcheck"
)

// TestMain fails the run when it leaves goroutines of a reflector behind. Errors are not logged: the default
// does so at most once a millisecond, by a clock that tests with a virtual one set years ahead.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(leakcheck.Main(m, "crdcache/", "tools/cache."))
}
