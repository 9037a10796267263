package readapi_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/internal/answers"
)

const (
	asTable       = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial     = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

	base = "/apis/" + group + "/v1/"
)

// rawRequests are paths with equal answers in every media type. answers.Suites has more, mostly in JSON.
var rawRequests = []string{
	"workloads", "namespaces/payments/workloads", "namespaces/attic/workloads",
	"namespaces/nowhere/workloads", "environments", "routes", "releases",
	"workloads?limit=3", "workloads?limit=5&resourceVersion=0",
	"namespaces/payments/workloads?limit=2&labelSelector=nope!%3Dyes",
	"workloads?limit=2&fieldSelector=spec.tier%3Dcritical", "workloads?fieldSelector=spec.replicas%3D0",
	"workloads?fieldSelector=spec.paused%3Dtrue", "workloads?fieldSelector=spec.paused%3D",
	"workloads?fieldSelector=status.phase!%3DRunning", "workloads?fieldSelector=metadata.name%3Dsearch",
	"workloads?fieldSelector=metadata.namespace%3Dmedia,metadata.name%3Dsearch",
	"environments?fieldSelector=metadata.namespace%3Dx", "environments?fieldSelector=spec.protected%3Dtrue",
	"routes?fieldSelector=spec.host%3Dshop.example.com", "workloads?resourceVersion=1",
	"workloads?resourceVersionMatch=NotOlderThan&resourceVersion=1", "workloads?includeObject=None",
	"workloads?includeObject=Object", "environments/production-eu?resourceVersion=0",
	"workloads/dns", "namespaces/edge/workloads/dns", "namespaces/edge/workloads/dns/status",
	"namespaces/edge/workloads/dns/nope", "namespaces/edge/environments", "namespaces/edge/nope/x",
}

// TestRawResponses compares answers in every media type: code, body and relevant headers.
func TestRawResponses(t *testing.T) {
	p := newPair(t)
	var questions []answers.Question
	ask := func(path, accept string) {
		questions = append(questions, answers.Question{Method: http.MethodGet, Path: path, Accept: accept})
	}
	for _, accept := range []string{"application/json", asTable, asPartialList + ",application/json",
		asPartial + ",application/json", "*/*", ""} {
		for _, path := range rawRequests {
			ask(base+path, accept)
		}
	}
	for _, path := range []string{
		"/apis/" + group + "/v1beta1/routes", "/apis/" + group + "/v1beta1/namespaces/storefront/routes/shop",
		"/apis/" + group + "/v9", "/apis/" + group + "/v9/routes", "/apis/nope/v1",
		"/api/v1/namespaces/payments", "/api/v1/namespaces/none", "/api/v1/namespaces/a/nope",
		"/readyz", "/livez", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/routes." + group,
		// A kube-apiserver waits for future versions, in case it lags behind.
		base + "workloads?resourceVersion=99999999", base +
			"environments/production-eu?resourceVersion=99999999",
	} {
		ask(path, "application/json")
	}
	for _, accept := range []string{"text/html,*/*;q=0.1", "application/yaml;q=0.1,application/json"} {
		ask(base+"environments/production-eu", accept)
	}
	// a watch-list in every media type
	const initial = "watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	for _, query := range []string{initial, initial + "&fieldSelector=spec.protected%3Dtrue", initial +
		"&resourceVersion=99999999"} {
		for _, accept := range []string{"application/json", asTable, asPartial} {
			ask(base+"environments?"+query, accept)
		}
	}
	answers.Compare(t, p.apiServer, answers.Server{Name: "storage", Config: p.crdcache}, questions)
	t.Run("pages", func(t *testing.T) { testPages(t, p) })
}

// testPages reads the same list in pages from both servers.
func testPages(t *testing.T, p *serverPair) {
	for _, path := range []string{"workloads?limit=4", "namespaces/payments/workloads?limit=2",
		"workloads?limit=2&labelSelector=demo.crdcache.dev/team%3Dshop"} {
		next := [2]string{}
		for page := 0; ; page++ {
			var bodies [2]any
			for i, config := range []*rest.Config{p.apiServer, p.crdcache} {
				a := answers.Ask(t, config, http.MethodGet, base+path+"&continue="+next[i],
					http.Header{"Accept": {"application/json"}})
				var list struct{ Metadata struct{ Continue string } }
				decode(t, a.Body, &list)
				bodies[i], next[i] = answers.Comparable(a.Body), list.Metadata.Continue
			}
			if diff := cmp.Diff(bodies[0], bodies[1]); diff != "" {
				t.Fatalf("%s, page %d (-want +got):\n%s", path, page, diff)
			}
			if next[0] == "" {
				break
			}
		}
	}
}
