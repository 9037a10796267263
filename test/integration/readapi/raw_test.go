package readapi_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/integration/internal/answers"
	"github.com/crdcache/crdcache/test/testcluster"
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
}

// TestRefusals compares errors and warnings that depend on rules of single types.
func TestRefusals(t *testing.T) {
	harness.Require(t, harness.Since("1.37")) // testcluster behaves like 1.37
	group, namespace := harness.Group(t), harness.Namespace(t)
	gizmo := newDefinition(group, "Gizmo", "Namespaced", true)
	harness.InstallCRDs(t, gizmo)
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Scheme: clientgoscheme.Scheme})
	must(t, err)
	home := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": namespace}}}
	must(t, cluster.Load(t.Context(), gizmo, home))
	core, custom := "/api/v1/namespaces/"+namespace, "/apis/"+group+"/v1/namespaces/"+namespace+"/gizmos"
	object := func(apiVersion, kind, rest string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","metadata":{"name":"a"` + rest + "}"
	}
	configMap := func(rest string) string { return object("v1", "ConfigMap", "}"+rest) }
	const labels, mutable = `{"metadata":{"labels":{"a":"b"}}}`, `{"immutable":false}`
	real, ours := newTestedServer(t, harness.Config(t)), newTestedServer(t, cluster.Config())
	for _, step := range []struct {
		name string
		request
	}{
		{"no namespace", request{http.MethodPost, "/api/v1/configmaps", "", mediaJSON, configMap("")}},
		{"no namespace, delete all", request{http.MethodDelete, "/api/v1/configmaps", "", "", nil}},
		{"no namespace, custom", request{http.MethodPost, "/apis/" + group + "/v1/gizmos", "", mediaJSON,
			object(group+"/v1", "Gizmo", "}")}},
		{"no namespace, custom, delete all",
			request{http.MethodDelete, "/apis/" + group + "/v1/gizmos", "", "", nil}},

		{"no map", request{http.MethodPost, core + "/configmaps", "", mediaJSON, configMap(`,"data":5`)}},
		{"no string", request{http.MethodPost, core + "/configmaps", "", mediaJSON,
			configMap(`,"data":{"a":1}`)}},
		{"no base64", request{http.MethodPost, core + "/secrets", "", mediaJSON,
			object("v1", "Secret", `},"data":{"a":"!"}`)}},
		{"no number", request{http.MethodPost, "/apis/apps/v1/namespaces/" + namespace + "/deployments", "",
			mediaJSON, object("apps/v1", "Deployment", `},"spec":{"replicas":"1"}`)}},
		{"labels", request{http.MethodPost, core + "/configmaps", "", mediaJSON,
			object("v1", "ConfigMap", `,"labels":{"a":1}}`)}},

		{"immutable", request{http.MethodPost, core + "/configmaps", "", mediaJSON,
			configMap(`,"immutable":true,"data":{"a":"1"},"binaryData":{"b":"AA=="}`)}},
		{"other data", request{http.MethodPut, core + "/configmaps/a", "", mediaJSON,
			configMap(`,"immutable":true,"data":{"a":"2"},"binaryData":{"b":"AA=="}`)}},
		{"an array", request{http.MethodPut, core + "/configmaps/a", "", mediaJSON,
			configMap(`,"immutable":true,"data":{"a":[]}`)}},
		{"nothing kept", request{http.MethodPut, core + "/configmaps/a", "", mediaJSON,
			configMap(`,"data":{"a":"2"}`)}},
		{"mutable", request{http.MethodPatch, core + "/configmaps/a", "", mediaMerge, mutable}},
		{"no data", request{http.MethodPatch, core + "/configmaps/a", "", mediaMerge,
			`{"data":null,"binaryData":{}}`}},
		{"a patch to a number", request{http.MethodPatch, core + "/configmaps/a", "", mediaMerge,
			`{"data":{"a":1}}`}},
		{"labels of immutable", request{http.MethodPatch, core + "/configmaps/a", "", mediaMerge, labels}},
		{"immutable Secret", request{http.MethodPost, core + "/secrets", "", mediaJSON,
			object("v1", "Secret", `},"type":"a/b","immutable":true,"data":{"a":"AA=="}`)}},
		{"mutable Secret", request{http.MethodPatch, core + "/secrets/a", "", mediaMerge, mutable}},
		{"other data of a Secret", request{http.MethodPatch, core + "/secrets/a", "", mediaMerge,
			`{"data":{"b":"AA=="}}`}},
		{"labels of immutable Secret", request{http.MethodPatch, core + "/secrets/a", "",
			mediaMerge, labels}},

		{"finalizers", request{http.MethodPost, custom, "", mediaJSON,
			object(group+"/v1", "Gizmo", `,"finalizers":["plain","b.c","a.b/c","orphan"]}`)}},
		{"the same finalizers", request{http.MethodPatch, custom + "/a", "", mediaMerge, labels}},
		{"one finalizer more", request{http.MethodPatch, custom + "/a", "", mediaMerge,
			`{"metadata":{"finalizers":["plain","more"]}}`}},
		{"finalizers of a Lease", request{http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/" +
			namespace + "/leases", "", mediaJSON, object("coordination.k8s.io/v1", "Lease",
			`,"finalizers":["plain"]},"spec":{"holderIdentity":"x"}`)}},
	} {
		t.Run(step.name, func(t *testing.T) {
			want, err := real.send(t.Context(), step.request)
			must(t, err)
			got, err := ours.send(t.Context(), step.request)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-real +ours):\n%s", diff)
			}
		})
	}
}
