package follow

import (
	"os"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit"
)

// TestMain fails if goroutines of a Follower remain.
func TestMain(m *testing.M) { os.Exit(testkit.Main(m, "internal/follow.")) }
