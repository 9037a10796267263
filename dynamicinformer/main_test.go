package dynamicinformer

import (
	"os"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit/leakcheck"
)

// TestMain fails the run when it leaves goroutines of a factory, an informer or a reflector behind.
func TestMain(m *testing.M) { os.Exit(leakcheck.Main(m, "crdcache/", "tools/cache.")) }
