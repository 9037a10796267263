// Package conformance_test runs the conformance suite of our informers against a real API server.
package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) {
	// Scenarios wait more than they compute, so more of them than there are processors go side by side.
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	harness.Main(m)
}
