// Package readapi_test loads the same definitions and objects into a real API server and into a readapi
// handler. It compares the answers: kubectl's output, and HTTP responses byte for byte. It also makes the
// same writes on a real API server and an in-memory cluster, and compares the results.
package readapi_test

import (
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
