package informer

import (
	"flag"
	"os"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit/leakcheck"
)

// TestMain fails the run when it leaves goroutines of an informer or a reflector behind.
func TestMain(m *testing.M) {
	flag.Parse()
	// The conformance suite spends its time waiting for client-go's backoff, not computing.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(leakcheck.Main(m, "internal/informer.", "tools/cache."))
}
