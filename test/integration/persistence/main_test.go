// Package persistence_test restarts persisted informers on a real API server.
package persistence_test

import (
	"flag"
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var (
	objects = flag.Int("objects", 300, "the number of objects; the test logs the cost of each restart")
	types   = flag.Int("types", 3, "the number of types, among which the objects are distributed")
	changes = flag.Int("changes", 100, "the number of objects that change in each step")
)

func TestMain(m *testing.M) {
	flag.Parse()
	harness.Main(m)
}
