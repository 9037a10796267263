package shard

import (
	"os"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m, "crdcache/adapters/shard")) }
