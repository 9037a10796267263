package readapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

func TestSelect(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	allKeys := []string{"default/a", "default/b", "other-one/c", "other/a"}
	tests := map[string]struct {
		path, labels, fields string
		want                 []string
	}{
		"all":       {widgetsPath, "", "", allKeys},
		"namespace": {inDefaultPath, "", "", []string{"default/a", "default/b"}},
		"namespace as prefix": {"/apis/example.com/v1/namespaces/other/widgets", "", "",
			[]string{"other/a"}},
		"empty namespace": {"/apis/example.com/v1/namespaces/nowhere/widgets", "", "", []string{}},
		"trailing slash":  {widgetsPath + "/", "", "", allKeys},
		"label":           {widgetsPath, "color=red", "", []string{"default/a", "other-one/c"}},
		"label set": {widgetsPath, "color in (red, blue)", "",
			[]string{"default/a", "other-one/c"}},
		"without label":    {widgetsPath, "!color", "", []string{}},
		"name":             {widgetsPath, "", "metadata.name=a", []string{"default/a", "other/a"}},
		"namespace field":  {widgetsPath, "", "metadata.namespace=other", []string{"other/a"}},
		"selectable field": {widgetsPath, "", "spec.color=green", []string{"default/b", "other/a"}},
		"selectable field not": {widgetsPath, "", "spec.color!=green,metadata.name!=a",
			[]string{"other-one/c"}},
		"both": {widgetsPath, "color=red", "metadata.name=c", []string{"other-one/c"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			query := url.Values{"labelSelector": {tt.labels}, "fieldSelector": {tt.fields}}
			if diff := cmp.Diff(tt.want, get(h, tt.path+"?"+query.Encode()).Keys(t)); diff != "" {
				t.Errorf("listed keys (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSelectScalars verifies the values of fields of each type, with which field selectors are compared.
func TestSelectScalars(t *testing.T) {
	tests := map[string]struct {
		value any
		want  string
	}{
		"string": {"x", "x"}, "integer": {int64(7), "7"}, "bool": {true, "true"}, "null": {nil, ""},
		"object": {map[string]any{"a": "b"}, ""}, "array": {[]any{"a"}, ""},
	}
	path := jsonpath.FromSegments("spec", "f")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(map[string]any{"spec": map[string]any{"f": tt.value}})
			if err != nil {
				t.Fatal(err)
			}
			if got := readapi.Scalar(body, path); got != tt.want {
				t.Errorf("Scalar() = %q, want %q", got, tt.want)
			}
		})
	}
	if got := readapi.Scalar([]byte(`{"spec":"x"}`), path); got != "" {
		t.Errorf("Scalar() of a path below a string = %q, want empty", got)
	}
}

func TestListForms(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	path := inDefaultPath + "?limit=1"
	next := readapi.NewContinueToken(10, "default", "default/a")
	tests := map[string]struct{ path, accept, want string }{
		"json": {path, "application/json",
			`{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":{"color":"red"},"name":"a","namespace":"default","resourceVersion":"7"},"spec":{"color":"red"}}],"kind":"WidgetList","metadata":{"continue":"` + next + `","remainingItemCount":1,"resourceVersion":"10"}}`},
		"metadata": {path, asPartialList,
			`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10","continue":"` + next + `","remainingItemCount":1},"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"default","resourceVersion":"7","labels":{"color":"red"}}}]}`},
		"empty": {inDefaultPath + "?labelSelector=x", "application/json",
			`{"apiVersion":"example.com/v1","items":[],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"10"}}`},
		"yaml": {inDefaultPath + "?labelSelector=x", "application/yaml",
			"apiVersion: example.com/v1\nitems: []\nkind: WidgetList\nmetadata:\n  continue: \"\"\n  resourceVersion: \"10\""},
		"all of any": {inDefaultPath + "?limit=1&resourceVersion=0", asPartialList,
			`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10"},"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"default","resourceVersion":"7","labels":{"color":"red"}}},{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b","namespace":"default","resourceVersion":"8","labels":{"color":"green"}}}]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, get(h, tt.path, "Accept", tt.accept).Body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPages(t *testing.T) {
	storage := newWidgets(t, apiserver.StorageOptions{})
	h := handlerOf(storage)
	page := func(query string) (keys []string, token, version string, remaining any) {
		a := get(h, widgetsPath+"?"+query)
		if a.Code != 200 {
			t.Fatalf("page %s = %d %s, want 200", query, a.Code, a.Body)
		}
		u := a.Decoded(t)
		token, _, _ = unstructured.NestedString(u.Object, "metadata", "continue")
		remaining, _, _ = unstructured.NestedFieldNoCopy(u.Object, "metadata", "remainingItemCount")
		return a.Keys(t), token, u.GetResourceVersion(), remaining
	}
	keys, token, version, remaining := page("limit=2")
	if diff := cmp.Diff([]string{"default/a", "default/b"}, keys); diff != "" || remaining != int64(2) {
		t.Errorf("first page, %v remaining (-want +got):\n%s", remaining, diff)
	}
	// Changes between pages do not affect the list.
	storage.Delete(widgetResource, "other", "a")
	apply(t, storage, testkit.Widget("other", "z", "red"))
	keys, token, secondVersion, remaining := page("limit=2&continue=" + token)
	if diff := cmp.Diff([]string{"other-one/c", "other/a"}, keys); diff != "" || token != "" ||
		remaining != nil ||
		secondVersion != version {
		t.Errorf("second page at %s, %v remaining, next %q (-want +got):\n%s", secondVersion, remaining, token,
			diff)
	}
	if keys, _, _, remaining = page("limit=1&labelSelector=color%3Dred"); len(keys) != 1 || remaining != nil {
		t.Errorf("page with a selector = %v, %v remaining, want 1 key and no remainingItemCount", keys, remaining)
	}

	// The storage forgets the version of the first page.
	_, token, _, _ = page("limit=2")
	storage.Compact()
	apply(t, storage, testkit.Widget("default", "bb", "red"))
	storage.Compact()
	expired := get(h, widgetsPath+"?limit=2&continue="+token)
	rest, _, _ := unstructured.NestedString(expired.Decoded(t).Object, "metadata", "continue")
	if expired.Code != 410 || !strings.Contains(expired.Body, `"reason":"Expired"`) || rest == "" {
		t.Fatalf("page of a forgotten version = %d %s, want 410 with a token", expired.Code, expired.Body)
	}
	if keys, _, _, _ = page("continue=" + rest); fmt.Sprint(keys) != "[default/bb other-one/c other/z]" {
		t.Errorf("the remaining pages in the latest state = %v, want the latest widgets after other/a", keys)
	}
}

func TestTokenErrors(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	tests := map[string]struct {
		version int64
		code    int
	}{"future": {99, 504}, "zero": {0, 400}, "Latest": {readapi.Latest, 200}, "any negative": {-2, 200}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := get(h, widgetsPath+"?continue="+readapi.NewContinueToken(tt.version, "",
				"default/a")); got.Code != tt.code {
				t.Errorf("GET with the token = %d %s, want %d", got.Code, got.Body, tt.code)
			}
		})
	}
}
