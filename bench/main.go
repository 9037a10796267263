// Command bench compares crdcache with client-go, controller-runtime and kubectl, side by side on one machine
// and one API server, and writes docs/benchmarks.md. See docs/benchmarks.md for what is measured, and run it
// with "make bench".
package main

import (
	"os"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/run"
)

func main() {
	if run.IsChild(os.Args) {
		os.Exit(run.ChildMain(experiment.Run))
	}
	os.Exit(command(os.Args[1:], os.Stderr))
}
