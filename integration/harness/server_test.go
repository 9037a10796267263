package harness

import (
	"os"
	"strings"
	"testing"
)

// TestFeatures compares the detected features with the flags of the API server.
func TestFeatures(t *testing.T) {
	if !Has(t, Since("1.30")) {
		t.Error("the API server is older than the supported releases")
	}
	if Has(t, Since("1.99")) {
		t.Error("the API server is newer than any release")
	}
	off := strings.Contains(os.Getenv(envAPIServerArgs), "WatchList=false")
	if got := Has(t, WatchList); got && off {
		t.Error("Has(WatchList) = true for a server without watch-lists")
	} else if !got && !off && Has(t, Since("1.34")) {
		t.Error("Has(WatchList) = false for a server with watch-lists")
	}
}

// TestWithoutWatchList runs TestFeatures on an API server without watch-lists. A test that needs them must be
// skipped with the reason.
func TestWithoutWatchList(t *testing.T) {
	requireControlPlane(t) // skips without binaries
	gate := envAPIServerArgs + "=feature-gates=WatchList=false"
	out, err := runAlone(t, "TestFeatures", gate)
	if err != nil || !strings.Contains(out, "--- PASS: TestFeatures") {
		t.Errorf("TestFeatures did not pass: %v\n%s", err, out)
	}
	out, err = runAlone(t, "TestRequireWatchList", gate)
	if err != nil || !strings.Contains(out, "--- SKIP: TestRequireWatchList") ||
		!strings.Contains(out, "needs watch-list, which this server lacks") {
		t.Errorf("the test without the required feature: %v, want a skip that names it\n%s", err, out)
	}
}

func TestRequireWatchList(t *testing.T) { Require(t, Since("1.30"), WatchList) }
