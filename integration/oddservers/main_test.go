// Package oddservers_test follows a real API server through what may stand in front of one: reverse proxies,
// and load balancers over API servers that do not know the same yet.
package oddservers_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
