// Package history_test runs random histories on a real API server and checks the informers.
//
// A history has rounds. In each round, a writer creates, changes and deletes objects of a few types.
// Meanwhile, connections break, the server restarts, definitions are deleted and created again, etcd is
// compacted, and some subscribers are slow, late, or removed. A process that persists its caches stops or is
// killed, and a new one starts on the same folder. Sometimes the process gets another cluster with types and
// objects of the same names, and later the first one again. At the end of a round, all informers must agree
// with their server, and the events of each subscriber must be consistent in their order.
//
// A round depends on its seed, which is printed. Repeat it with -args -seed=N. The scheduling of the server,
// the connections and the goroutines remains random.
package history_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var (
	duration = flag.Duration("duration", 20*time.Second, "the time during which new rounds start")
	seed     = flag.Uint64("seed", 0, "the seed of the first round; 0 means a seed from the clock")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if options, child := os.LookupEnv(childEnv); child {
		os.Exit(runChild(options))
	}
	harness.Main(m)
}
