// Package controllerruntime_test runs the cache for controller-runtime with a real API server. It runs
// controller-runtime's own suite for caches, and controllers for types that are missing, deleted and created
// again.
package controllerruntime_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
