// Package factory_test runs dynamicinformer's Factory against a real API server: what it holds, what its
// handlers see, and how it takes forbidden types, absent types, outages and lost history.
package factory_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
