package follow

import (
	"os"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit/leakcheck"
)

// TestMain fails if goroutines of a Follower remain.
func TestMain(m *testing.M) { os.Exit(leakcheck.Main(m, "internal/follow.")) }
