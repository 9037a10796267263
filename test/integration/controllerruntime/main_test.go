// Package controllerruntime_test runs the cache for controller-runtime with a real API server. It runs
// controller-runtime's own suite for caches, and controllers for types that are missing, deleted and created
// again.
package controllerruntime_test

import (
	"os"
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) {
	if options, operator := os.LookupEnv(operatorEnv); operator {
		os.Exit(runOperator(options))
	}
	harness.Main(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
