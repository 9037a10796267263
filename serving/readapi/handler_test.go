package readapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
)

const (
	asTable       = "application/json;as=Table;v=v1;g=meta.k8s.io"
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
