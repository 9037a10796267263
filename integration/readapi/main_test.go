// Package readapi_test loads the same definitions and objects into a real API server and into a readapi
// handler, and compares what both answer: to kubectl, and byte for byte over HTTP. It writes the same to a
// real API server and to a cluster in memory, and compares the outcome.
package readapi_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
