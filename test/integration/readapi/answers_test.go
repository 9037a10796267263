package readapi_test

import (
	"testing"

	"github.com/crdcache/crdcache/test/integration/internal/answers"
)

// TestAnswers compares the answers of an in-memory cluster with a real API server's. TestAnswers in
// test/integration/crdcached compares crdcached's answers.
func TestAnswers(t *testing.T) {
	p := newPair(t)
	for _, suite := range answers.Suites() {
		t.Run(suite.Name, func(t *testing.T) {
			answers.Compare(t, p.apiServer, answers.Server{Name: "storage", Config: p.crdcache}, suite.Questions)
		})
	}
}
