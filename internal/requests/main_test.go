package requests

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/testkit"
)

// TestMain fails if goroutines of a reflector remain. Error handlers are disabled: the default one limits its
// rate by time, and the clock of a synctest bubble is years away from the real one.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(testkit.Main(m, "crdcache/", "tools/cache."))
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
