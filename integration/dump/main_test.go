// Package dump_test compares the output of "crdcache dump" with kubectl's and with the API.
package dump_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
