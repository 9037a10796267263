// Package persistence_test restarts persisted informers on a real API server.
package persistence_test

import (
	"flag"
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

var (
	objects = flag.Int("objects", 300, "how many objects there are; what restarts cost is logged")
	types   = flag.Int("types", 3, "of how many types they are")
	changes = flag.Int("changes", 100,
		"how many of them change between two processes, and how many while one runs")
)

func TestMain(m *testing.M) {
	flag.Parse()
	harness.Main(m)
}
