// Package testcluster_test does the same on a real API server and on a cluster in memory, and compares what comes of it.
package testcluster_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
