package readapi_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/crdcache/crdcache/integration/internal/answers"
)

// TestAnswers compares the answers of a storage, and those of a cache, with the ones of a real API server.
func TestAnswers(t *testing.T) {
	fill(t)
	storage, cache := newCopy(t), newCache(t)
	writes := answers.Difference{
		Why:    "a cache refuses whatever reads nothing in words of its own",
		Writes: true, Path: regexp.MustCompile("^(/nope|/version|/api|/api/v1|/apis/.*)$"), Code: http.StatusMethodNotAllowed,
	}
	servers := []answers.Server{
		{Name: "storage", Config: storage.ours}, {Name: "cache", Config: cache.ours, Differs: []answers.Difference{writes, answers.FutureWatches}},
	}
	for _, suite := range answers.Suites() {
		t.Run(suite.Name, func(t *testing.T) { answers.Compare(t, storage.real, servers, suite.Questions) })
	}
}
