package crdcached_test

import (
	"net/http"
	"regexp"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/integration/internal/answers"
)

// intendedDifferences lists where crdcached answers an administrator differently from the API server.
// Unauthorized users get the API server's 403 instead: see testAnswers.
var intendedDifferences = []answers.Difference{
	answers.FutureWatches,
	{
		Why:    "every write gets the same 405, whatever the path",
		Writes: true, Path: regexp.MustCompile("^(/nope|/healthz|/version|/api|/api/v1|" + demo +
			"/nope)$"), Code: http.StatusMethodNotAllowed,
	},
	{
		Why:    "the 405 for a write has crdcached's own text",
		Writes: true, Path: regexp.MustCompile("^" + demo +
			"/environments(/[^/]+)?$"), Code: http.StatusMethodNotAllowed, ExpectedText: "crdcached only reads",
	},
	{
		Why:  "a type that is not cached gets 421, whether or not the cluster has it",
		Path: regexp.MustCompile("/v[19]/(nope(/x(/y)?)?|namespace|environment|Environments|apiservices/none|namespaces/payments/nope(/x)?)$"),
		Code: http.StatusMisdirectedRequest, ExpectedText: "crdcached does not cache",
	},
	{
		Why: "namespaces in a group, and an empty version, count as types that are not cached",
		Path: regexp.MustCompile("^" + demo +
			"/namespaces(/edge(/|/status|/namespaces/x|%2Fx/workloads)?)?$|^/apis/" + group + "//v1$"),
		Code: http.StatusMisdirectedRequest, ExpectedText: "crdcached does not cache",
	},
	{
		Why: "an ambiguous path gets 400 instead of 404",
		Path: regexp.MustCompile("^(/apis//v1/x|" + demo +
			"//environments|/apis/nope/v1/x/y/z/a/b|/api/v1/nope/x/y/z)$"),
		Code: http.StatusBadRequest, ExpectedText: "does not serve the path",
	},
}

// TestAnswers compares the answers of crdcached and the API server to an administrator, except
// intendedDifferences.
func TestAnswers(t *testing.T) {
	harness.Require(t, harness.WatchList, harness.SelectableFields, harness.ErrorWording)
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	s := harness.StartCrdcached(
		t, "types: ['*.demo.crdcache.dev', namespaces, customresourcedefinitions]\nlimits: {requests: 0, watches: 0, bytesPerSecond: 0}\n")
	admin := harness.Config(t)
	ours := answers.Server{Name: "crdcached", Config: s.As(admin), IntendedDifferences: intendedDifferences}
	for _, suite := range answers.Suites() {
		t.Run(suite.Name, func(t *testing.T) {
			answers.Compare(t, admin, ours, suite.Questions)
		})
	}
}

// send sends one request. header alternates names and values.
func send(t *testing.T, config *rest.Config, method, path string, header ...string) answers.Answer {
	t.Helper()
	all := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		all.Set(header[i], header[i+1])
	}
	return answers.Ask(t, config, method, path, all)
}
