package readapi_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

// TestDiscoveryETag verifies that the ETag of a discovery document changes when a type is added.
func TestDiscoveryETag(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{})
	h := handlerOf(s)
	first := get(h, "/apis", "Accept", readapi.AggregatedMedia)
	etag := first.Header.Get("ETag")
	if got := get(h, "/apis", "Accept", readapi.AggregatedMedia, "If-None-Match", etag); got.Code != 304 ||
		got.Body != "" {
		t.Errorf("GET with the current ETag = %d %s, want 304", got.Code, got.Body)
	}
	apply(t, s, strings.ReplaceAll(strings.ReplaceAll(testkit.WidgetCRD, "widget", "gadget"), "Widget", "Gadget"))
	if got := get(h, "/apis", "Accept", readapi.AggregatedMedia, "If-None-Match", etag); got.Code != 200 ||
		!strings.Contains(got.Body, "gadgets") {
		t.Errorf("GET after a type was added = %d %s, want the new document", got.Code, got.Body)
	}
	if got := get(h, "/apis").Body; !strings.HasPrefix(got, `{"kind":"APIGroupList"`) {
		t.Errorf("legacy discovery = %s, want an APIGroupList", got)
	}
}
