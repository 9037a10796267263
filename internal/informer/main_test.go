package informer

import (
	"flag"
	"os"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit"
)

// TestMain fails if goroutines of an informer or reflector remain.
func TestMain(m *testing.M) {
	flag.Parse()
	// The conformance suite mostly waits for client-go's backoff.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(testkit.Main(m, "internal/informer.", "tools/cache."))
}
