// Package history_test plays random histories on a real API server and checks what informers make of them.
//
// A history is a number of rounds. In each a writer creates, changes and deletes objects of a few types,
// while connections break, the server is restarted, definitions go and come back, its history is compacted,
// and some subscribers are slow, late or leave. A process that keeps what it holds on disk ends or is killed,
// and another one begins on the same folder; now and then its server is replaced by another cluster with
// types and objects of the same names, and back. At the end of a round everything that follows the types must
// agree with its server, and what each subscriber was told must make sense in the order in which it was told.
//
// A round depends on its seed, which is printed: run it again with -args -seed=N. How the server, the
// connections and the goroutines take turns is up to them.
package history_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/crdcache/crdcache/integration/harness"
)

var (
	duration = flag.Duration("duration", 20*time.Second, "how long rounds are begun")
	seed     = flag.Uint64("seed", 0, "the seed of the first round; 0: by the clock")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if options, child := os.LookupEnv(childVariable); child {
		os.Exit(runChild(options))
	}
	harness.Main(m)
}
