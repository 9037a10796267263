// Package conformance_test runs the conformance suite of our informers against a real API server.
package conformance_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
