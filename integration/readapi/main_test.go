// Package readapi_test loads the same definitions and objects into a real API server and into a readapi handler, and
// compares what both answer: to kubectl, and byte for byte over HTTP.
package readapi_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
