// Package browser_test tests the page of package web with a real Chromium, over an in-memory cluster with the
// objects of testdata and over a real API server.
package browser_test

import (
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
