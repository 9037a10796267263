// Package conformance_test runs the conformance suite of the informers against a real API server.
package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) {
	// Scenarios mostly wait, but many concurrent ones starve each other on a small machine.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	harness.Main(m)
}
