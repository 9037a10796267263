package follow

import (
	"os"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit/leakcheck"
)

// TestMain fails the run when it leaves goroutines of a follower behind.
func TestMain(m *testing.M) { os.Exit(leakcheck.Main(m, "internal/follow.")) }
