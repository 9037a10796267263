// Package browser_test looks at the page of package web with a real Chromium: over a cluster in memory that
// has what is in testdata, and over a real API server.
package browser_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
