// Package dump_test runs "crdcache dump" against a real API server and compares what it prints with what
// kubectl does, and with what the API returns.
package dump_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
