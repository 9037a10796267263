package readapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

// TestErrors compares an error response of each form with that of a kube-apiserver 1.37. TestAnswers in
// test/integration/readapi compares thousands with a running one.
func TestErrors(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	invalid := func(message, causes string) string {
		return `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"ListOptions.meta.k8s.io \"\" is invalid: ` + message +
			`","reason":"Invalid","details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[` + causes +
			`]},"code":422}`
	}
	badRequest := func(message string) string {
		return `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"` + message +
			`","reason":"BadRequest","code":400}`
	}
	tests := map[string]struct {
		path, accept, want string
		code               int
	}{
		"no such object": {inDefaultPath + "/x", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"widgets.example.com \"x\" not found","reason":"NotFound","details":{"name":"x","group":"example.com","kind":"widgets"},"code":404}`, 404},
		"no such type": {"/apis/example.com/v1/gadgets", "", "404 page not found", 404},
		"no such version of the core group": {"/api/v2", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`, 404},
		"limit": {widgetsPath + "?limit=abc", "",
			badRequest(`strconv.ParseInt: parsing \"abc\": invalid syntax`), 400},
		"version to come": {widgetsPath + "?resourceVersion=99999999", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 99999999, current: 10","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`, 504},
		"initial events without match": {widgetsPath + "?watch=true&sendInitialEvents=true", "",
			invalid("resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan", `{"reason":"FieldValueForbidden","message":"Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan","field":"resourceVersionMatch"}`), 422},
		"included object": {widgetsPath + "?includeObject=x", asTable,
			badRequest(`Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or empty`), 400},
		"object for a list": {widgetsPath, asPartial,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)","reason":"NotAcceptable","code":406}`, 406},
		"watch in YAML": {widgetsPath + "?watch=1", "application/yaml",
			"apiVersion: v1\ncode: 406\nkind: Status\nmessage: 'only the following media types are accepted: application/json;stream=watch'\nmetadata: {}\nreason: NotAcceptable\nstatus: Failure", 406},
		"form before parameter": {widgetsPath + "?limit=abc", "text/html",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: application/json, application/yaml","reason":"NotAcceptable","code":406}`, 406},
		"no name": {inDefaultPath + "/a%25b", "",
			badRequest(`Name parameter invalid: \"a%b\": may not contain '%'`), 400},
		"version with continue": {widgetsPath + "?resourceVersion=3&continue=" +
			readapi.NewContinueToken(5, "",
				"default/a"), "", badRequest("specifying resource version is not allowed when using continue"), 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var headers []string
			if tt.accept != "" {
				headers = []string{"Accept", tt.accept}
			}
			got := get(h, tt.path, headers...)
			if got.Code != tt.code {
				t.Errorf("code %d, want %d", got.Code, tt.code)
			}
			if diff := cmp.Diff(tt.want, got.Body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if retry := got.Header.Get("Retry-After"); (retry == "1") != (tt.code == 504) {
				t.Errorf("Retry-After = %q for the status %d, want 1 only for 504", retry, tt.code)
			}
		})
	}
}

const (
	asTable       = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial     = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

func TestNothingCanBeWritten(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	tests := map[string]struct {
		method, path, verb string
	}{
		"create": {http.MethodPost, inDefaultPath, "create"}, "update": {http.MethodPut,
			inDefaultPath + "/a", "update"},
		"patch": {http.MethodPatch, inDefaultPath + "/a", "patch"}, "delete": {http.MethodDelete,
			inDefaultPath + "/a", "delete"},
		"delete all": {http.MethodDelete, inDefaultPath, "deletecollection"}, "status": {http.MethodPut,
			inDefaultPath + "/a/status", "update"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := testkit.Ask(h, tt.method, tt.path)
			want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"` +
				tt.verb +
				` is not supported on resources of kind \"widgets.example.com\"","reason":"MethodNotAllowed","details":{"group":"example.com","kind":"widgets"},"code":405}`
			if diff := cmp.Diff(want, got.Body); got.Code != 405 || diff != "" {
				t.Errorf("code %d (-want +got):\n%s", got.Code, diff)
			}
		})
	}
	for _, path := range []string{"/version", "/api", "/apis", "/apis/example.com/v1", "/openapi/v3"} {
		if got := testkit.Ask(h, http.MethodPost, path); got.Code != 405 ||
			!strings.Contains(got.Body, "the server does not allow this method") {
			t.Errorf("POST %s = %d %s, want 405", path, got.Code, got.Body)
		}
	}
}

func TestHealthAndVersion(t *testing.T) {
	h := handlerOf(apiserver.NewStorage(apiserver.StorageOptions{}))
	for _, path := range []string{"/healthz", "/readyz", "/livez"} {
		if got := get(h, path); got.Code != 200 || got.Body != "ok" {
			t.Errorf("%s = %d %s, want ok", path, got.Code, got.Body)
		}
	}
	var v struct{ Major, GitVersion string }
	if err := json.Unmarshal([]byte(get(h, "/version").Body), &v); err != nil || v.Major != "1" ||
		!strings.HasPrefix(v.GitVersion, "v1.") {
		t.Errorf("/version = %+v, %v, want a version v1", v, err)
	}
}

func TestGet(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{})
	apply(t, s, strings.Replace(testkit.Widget("default", "a", "red"), "spec:", "status: {ready: true}, spec:", 1))
	h := handlerOf(s)
	const object = `"kind":"Widget","metadata":{"labels":{"color":"red"},"name":"a","namespace":"default","resourceVersion":"11"},"spec":{"color":"red"},"status":{"ready":true}}`
	tests := map[string]struct{ path, accept, want string }{
		"json":   {inDefaultPath + "/a", "", `{"apiVersion":"example.com/v1",` + object},
		"status": {inDefaultPath + "/a/status", "", `{"apiVersion":"example.com/v1",` + object},
		"other version": {"/apis/example.com/v1beta1/namespaces/default/widgets/a", "",
			`{"apiVersion":"example.com/v1beta1","kind":"Widget","metadata":{"labels":{"color":"red"},"name":"a","namespace":"default","resourceVersion":"11"},"spec":{"color":"red"}}`},
		"preferences": {inDefaultPath + "/a", "text/html,application/yaml;q=0.1,*/*;q=0.5",
			`{"apiVersion":"example.com/v1",` + object},
		"fallback": {inDefaultPath + "/a", "application/json;as=Foo;v=v1;g=meta.k8s.io,application/json",
			`{"apiVersion":"example.com/v1",` + object},
		"yaml": {inDefaultPath + "/a", "application/yaml",
			"apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  labels:\n    color: red\n  name: a\n  namespace: default\n  resourceVersion: \"11\"\nspec:\n  color: red\nstatus:\n  ready: true"},
		"old metadata": {inDefaultPath + "/a",
			"application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":{"name":"a","namespace":"default","resourceVersion":"11","labels":{"color":"red"}}}`},
		"no quality": {inDefaultPath + "/a", "application/json;q=0",
			`{"apiVersion":"example.com/v1",` + object},
		"trailing": {inDefaultPath + "/a//?limit=abc&watch=1", "",
			`{"apiVersion":"example.com/v1",` + object},
		"metadata": {inDefaultPath + "/a", asPartial,
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"default","resourceVersion":"11","labels":{"color":"red"}}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := get(h, tt.path, "Accept", tt.accept)
			if tt.accept == "" {
				got = get(h, tt.path)
			}
			if diff := cmp.Diff(tt.want, got.Body); got.Code != 200 || diff != "" {
				t.Errorf("code %d (-want +got):\n%s", got.Code, diff)
			}
			deprecated := strings.Contains(tt.path, "v1beta1")
			if want := `299 - "example.com/v1beta1 Widget is deprecated"`; (got.Header.Get("Warning") == want) != deprecated {
				t.Errorf("the Warning header is %q, which does not match the version",
					got.Header.Get("Warning"))
			}
		})
	}
	if got := get(h, inDefaultPath+"/a?resourceVersion=99999"); got.Code != 504 {
		t.Errorf("GET at a future version = %d, want 504", got.Code)
	}
}

// TestWebhookConversion verifies that only the stored version of a type is served if a webhook is needed for
// other versions.
func TestWebhookConversion(t *testing.T) {
	s := apiserver.NewStorage(apiserver.StorageOptions{})
	apply(t, s, strings.Replace(testkit.WidgetCRD, "spec:\n", "spec:\n  conversion: {strategy: Webhook}\n", 1))
	apply(t, s, testkit.Widget("default", "a", "red"))
	h := handlerOf(s)
	if got := get(h, inDefaultPath+"/a"); got.Code != 200 {
		t.Errorf("GET in the stored version = %d %s, want 200", got.Code, got.Body)
	}
	const other = "/apis/example.com/v1beta1/namespaces/default/widgets"
	for _, path := range []string{other + "/a", other} {
		if got := get(h, path); got.Code != 500 ||
			!strings.Contains(got.Body, "conversion webhook for example.com/v1beta1, Kind=Widget failed") {
			t.Errorf("%s = %d %s, want a conversion error", path, got.Code, got.Body)
		}
	}
	if got := get(h, other+"?watch=1"); !strings.HasPrefix(got.Body, `{"type":"ERROR"`) ||
		!strings.Contains(got.Body, "conversion webhook") {
		t.Errorf("watch in another version = %s, want a conversion error", got.Body)
	}
}
