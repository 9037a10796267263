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

// TestErrors compares error responses with those of a kube-apiserver 1.37.
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
		"no such type":  {"/apis/example.com/v1/gadgets", "", "404 page not found", 404},
		"no such group": {"/apis/example.org/v1", "", "404 page not found", 404},
		"no such version of the core group": {"/api/v2", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`, 404},
		"no such type of the core group": {"/api/v1/namespaces/a/pods", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`, 404},
		"no namespace": {widgetsPath + "/a", "", "404 page not found", 404},
		"no subresource": {inDefaultPath + "/a/scale", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"widgets.example.com \"a\" not found","reason":"NotFound","details":{"name":"a","group":"example.com","kind":"widgets"},"code":404}`, 404},
		"two slashes": {"/apis/example.com/v1//widgets", "", "404 page not found", 404},
		"limit": {widgetsPath + "?limit=abc", "",
			badRequest(`strconv.ParseInt: parsing \"abc\": invalid syntax`), 400},
		"timeout": {widgetsPath + "?watch=true&timeoutSeconds=x", "",
			badRequest(`strconv.ParseInt: parsing \"x\": invalid syntax`), 400},
		"label selector": {widgetsPath + "?labelSelector=a%20b%20c", "",
			badRequest("unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"), 400},
		"field selector": {widgetsPath + "?fieldSelector=a", "",
			badRequest("invalid selector: 'a'; can't understand 'a'"), 400},
		"field": {widgetsPath + "?fieldSelector=spec.size%3D1", "",
			badRequest("field label not supported: spec.size"), 400},
		"field of a watch": {widgetsPath + "?watch=1&fieldSelector=spec.size%3D1", "",
			badRequest("field label not supported: spec.size"), 400},
		"namespace of a cluster type": {
			"/apis/apiregistration.k8s.io/v1/apiservices?fieldSelector=metadata.namespace%3Da", "",
			badRequest("field label not supported: metadata.namespace"), 400},
		"version of a list": {widgetsPath + "?resourceVersion=abc", "",
			badRequest(`invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax`), 400},
		"version of a get": {inDefaultPath + "/a?resourceVersion=abc", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax","code":500}`, 500},
		"version of a watch": {widgetsPath + "?watch=1&resourceVersion=abc", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax","code":500}`, 500},
		"version to come": {widgetsPath + "?resourceVersion=99999999", "",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 99999999, current: 10","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`, 504},
		"match without version": {widgetsPath + "?resourceVersionMatch=Exact", "",
			invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided", `{"reason":"FieldValueForbidden","message":"Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided","field":"resourceVersionMatch"}`), 422},
		"initial events of a list": {widgetsPath + "?sendInitialEvents=true", "",
			invalid("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
				`{"reason":"FieldValueForbidden","message":"Forbidden: sendInitialEvents is forbidden for list","field":"sendInitialEvents"}`), 422},
		"initial events without match": {widgetsPath + "?watch=true&sendInitialEvents=true", "",
			invalid("resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan", `{"reason":"FieldValueForbidden","message":"Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan","field":"resourceVersionMatch"}`), 422},
		"continue": {widgetsPath + "?continue=abc", "",
			badRequest("invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value"), 400},
		"included object": {widgetsPath + "?includeObject=x", asTable,
			badRequest(`Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or empty`), 400},
		"object for a list": {widgetsPath, asPartial,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)","reason":"NotAcceptable","code":406}`, 406},
		"list for an object": {inDefaultPath + "/a", asPartialList,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"content is not a list","code":500}`, 500},
		"form after parameter": {widgetsPath + "?continue=abc", asPartial,
			badRequest("invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value"), 400},
		"media type": {widgetsPath, "text/html",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: application/json, application/yaml","reason":"NotAcceptable","code":406}`, 406},
		"protobuf alone": {widgetsPath, "application/vnd.kubernetes.protobuf",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: application/json, application/yaml","reason":"NotAcceptable","code":406}`, 406},
		"unknown conversion": {widgetsPath, "application/json;as=Foo;v=v1;g=meta.k8s.io",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: application/json, application/yaml","reason":"NotAcceptable","code":406}`, 406},
		"watch in YAML": {widgetsPath + "?watch=1", "application/yaml",
			"apiVersion: v1\ncode: 406\nkind: Status\nmessage: 'only the following media types are accepted: application/json;stream=watch'\nmetadata: {}\nreason: NotAcceptable\nstatus: Failure", 406},
		"form before parameter": {widgetsPath + "?limit=abc", "text/html",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: application/json, application/yaml","reason":"NotAcceptable","code":406}`, 406},
		"discovery": {"/apis", asTable,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: application/json, application/yaml","reason":"NotAcceptable","code":406}`, 406},
		"no name": {inDefaultPath + "/a%25b", "",
			badRequest(`Name parameter invalid: \"a%b\": may not contain '%'`), 400},
		"watch with continue": {widgetsPath + "?watch=1&continue=abc", "",
			invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided", `{"reason":"FieldValueForbidden","message":"Forbidden: resourceVersionMatch is forbidden when continue is provided","field":"resourceVersionMatch"}`), 422},
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
