// Command bench compares crdcache with client-go, controller-runtime and kubectl on one machine and API
// server, and writes docs/benchmarks.md, which describes the measurements. Run it with "make bench".
package main

import (
	"os"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

func main() {
	if isChild(os.Args) {
		os.Exit(childMain(experiment.Run))
	}
	os.Exit(command(os.Args[1:], os.Stderr))
}
