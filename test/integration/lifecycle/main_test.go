// Package lifecycle_test follows types through their lives on a real API server, with a factory of informers
// and a tracker of types.
package lifecycle_test

import (
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
