package shard

import (
	"os"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit/leakcheck"
)

func TestMain(m *testing.M) { os.Exit(leakcheck.Main(m, "crdcache/shard", "leaderelection")) }
