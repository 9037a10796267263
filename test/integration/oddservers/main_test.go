// Package oddservers_test follows a real API server through reverse proxies, and through load balancers over
// API servers with different states.
package oddservers_test

import (
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
