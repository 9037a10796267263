package discovery_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
