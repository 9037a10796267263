package dynamicinformer

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/testkit"
)

// TestMain fails if goroutines of a factory, an informer or a reflector remain. Errors are not logged,
// because the default handler limits its rate with a clock that differs between synctest bubbles.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	followsCRDs = false
	os.Exit(testkit.Main(m, "crdcache/", "tools/cache."))
}
