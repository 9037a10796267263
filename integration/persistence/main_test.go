// Package persistence_test restarts informers on a real API server that keep what they hold on disk.
package persistence_test

import (
	"flag"
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

var objects = flag.Int("objects", 300, "how many objects there are; what restarts cost is logged")

func TestMain(m *testing.M) {
	flag.Parse()
	harness.Main(m)
}
