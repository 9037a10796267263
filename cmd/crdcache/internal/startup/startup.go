// Package startup delays the first garbage collection of the process. Initializing the packages of a build
// with CEL allocates 3 MB, and the runtime collects at 4 MB; a short command ends before its garbage is worth
// a collection. The delay takes a quarter off the time of "crdcache version": see BenchmarkStart of
// cel/cmd/crdcache.
//
// Import it for this effect. It imports only the standard library, because Go then initializes it before
// Kubernetes' packages.
package startup

import (
	"os"
	"runtime"
	"runtime/debug"
)

// delayed makes the runtime collect first at 16 MB. 100 percent is 4 MB.
const delayed = 400

func init() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(delayed)
	runtime.AddCleanup(new([16]byte), restore, usual) // runs after the first collection
}

// restore ends the delay, unless the command has set another percentage.
func restore(usual int) {
	if percent := debug.SetGCPercent(usual); percent != delayed {
		debug.SetGCPercent(percent)
	}
}
