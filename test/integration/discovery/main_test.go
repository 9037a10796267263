package discovery_test

import (
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
