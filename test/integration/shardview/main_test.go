// Package shardview_test follows shards on two real API servers with the same data. One of them filters.
package shardview_test

import (
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
