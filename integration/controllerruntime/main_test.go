// Package controllerruntime_test runs the cache for controller-runtime on a real API server:
// controller-runtime's own suite for caches, and controllers whose types are missing, go and come back.
package controllerruntime_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
