package crdcached_test

import (
	"net/http"
	"regexp"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/crdcached/running"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/integration/internal/answers"
)

// byDesign lists where crdcached answers an administrator differently from the API server. Other users get
// 403 first, with the text of the API server: see testAnswers.
var byDesign = []answers.Difference{
	answers.FutureWatches,
	{
		Why:    "it says in one form that it only reads, whatever the path",
		Writes: true, Path: regexp.MustCompile("^(/nope|/healthz|/version|/api|/api/v1|" + demo +
			"/nope)$"), Code: http.StatusMethodNotAllowed,
	},
	{
		Why:    "it says in its own words that it only reads",
		Writes: true, Path: regexp.MustCompile("^" + demo +
			"/environments(/[^/]+)?$"), Code: http.StatusMethodNotAllowed, Says: "crdcached only reads",
	},
	{
		Why:  "of types that it does not keep it says so, whether the cluster has them or not",
		Path: regexp.MustCompile("/v[19]/(nope(/x(/y)?)?|namespace|environment|Environments|apiservices/none|namespaces/payments/nope(/x)?)$"),
		Code: http.StatusMisdirectedRequest, Says: "crdcached does not cache",
	},
	{
		Why: "namespaces in a group, and a version without a name, are types that it does not keep, too",
		Path: regexp.MustCompile("^" + demo +
			"/namespaces(/edge(/|/status|/namespaces/x|%2Fx/workloads)?)?$|^/apis/" + group + "//v1$"),
		Code: http.StatusMisdirectedRequest, Says: "crdcached does not cache",
	},
	{
		Why: "paths that could be read in two ways are refused rather than not found",
		Path: regexp.MustCompile("^(/apis//v1/x|" + demo +
			"//environments|/apis/nope/v1/x/y/z/a/b|/api/v1/nope/x/y/z)$"),
		Code: http.StatusBadRequest, Says: "is not an address that is served here",
	},
}

// TestAnswers compares the answers of crdcached and the API server to an administrator, except byDesign.
func TestAnswers(t *testing.T) {
	harness.Require(t, harness.WatchList, harness.SelectableFields, harness.ErrorWording)
	harness.InstallCRDs(t, harness.Read(t, testdata+"crds")...)
	harness.Apply(t, harness.Read(t, testdata+"objects")...)
	s := running.Start(
		t, "types: ['*.demo.crdcache.dev', namespaces, customresourcedefinitions]\nlimits: {requests: 0, watches: 0, bytesPerSecond: 0}\n")
	admin := harness.Config(t)
	ours := answers.Server{Name: "crdcached", Config: s.As(admin), Differs: byDesign}
	for _, suite := range answers.Suites() {
		t.Run(suite.Name, func(t *testing.T) {
			answers.Compare(t, admin, []answers.Server{ours},
				suite.Questions)
		})
	}
}

// ask sends one request. header alternates names and values.
func ask(t *testing.T, config *rest.Config, method, path string, header ...string) answers.Answer {
	t.Helper()
	all := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		all.Set(header[i], header[i+1])
	}
	return answers.Ask(t, config, method, path, all)
}
