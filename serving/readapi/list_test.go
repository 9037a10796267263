package readapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

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
	if got := get(h, "/apis/example.com/v1/namespaces/other/widgets").Keys(t); !slices.Equal(got, []string{"other/a"}) {
		t.Errorf("the keys of a namespace whose name begins another's = %v, want other/a", got)
	}
	if got := get(h, widgetsPath+"?continue="+readapi.NewContinueToken(99, "", "default/a")); got.Code != 504 {
		t.Errorf("GET with the token of a future version = %d %s, want 504", got.Code, got.Body)
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

func TestParseRequest(t *testing.T) {
	tests := map[string]string{ // method and path to verb, type, namespace, name and subresource
		"GET /api/v1/pods":                                          "list pods.v1. //",
		"GET /api/v1/namespaces/a":                                  "get namespaces.v1. /a/",
		"GET /api/v1/namespaces":                                    "list namespaces.v1. //",
		"PUT /api/v1/namespaces/a/finalize":                         "update namespaces.v1. /a/finalize",
		"GET /api/v1/namespaces/a/pods/b/log":                       "get pods.v1. a/b/log",
		"GET /apis/g.io/v1/namespaces/a/things?watch=true":          "watch things.v1.g.io a//",
		"GET /apis/g.io/v1/things?watch&sendInitialEvents=true":     "watch-list things.v1.g.io //",
		"GET /apis/g.io/v1/things?watch=false":                      "list things.v1.g.io //",
		"DELETE /apis/g.io/v1/things":                               "deletecollection things.v1.g.io //",
		"POST /apis/g.io/v1/things":                                 "create things.v1.g.io //",
		"PATCH /apis/g.io/v1/things/a":                              "patch things.v1.g.io /a/",
		"GET /apis/g.io/v1":                                         "",
		"GET /apis":                                                 "",
		"GET /version":                                              "",
		"GET /apis//v1/things":                                      "",
		"GET /apis/g.io/v1/namespaces/a/things/b/c/d":               "",
		"GET /apis/g.io/v1/things?watch=true&sendInitialEvents=yes": "watch things.v1.g.io //",
	}
	for line, want := range tests {
		t.Run(line, func(t *testing.T) {
			var method, path string
			if _, err := fmt.Sscan(line, &method, &path); err != nil {
				t.Fatal(err)
			}
			r, ok := readapi.ParseRequest(httptest.NewRequest(method, path, nil))
			got := ""
			if ok {
				got = fmt.Sprintf("%s %s.%s.%s %s/%s/%s", r.Verb, r.GVR.Resource, r.GVR.Version, r.GVR.Group,
					r.Namespace, r.Name, r.Subresource)
			}
			if got != want {
				t.Errorf("the parsed request is %q, want %q", got, want)
			}
		})
	}
}

func tableOf(t *testing.T, a testkit.Answer) metav1.Table {
	t.Helper()
	var got metav1.Table
	if err := json.Unmarshal([]byte(a.Body), &got); err != nil || got.Kind != "Table" ||
		got.APIVersion != "meta.k8s.io/v1" {
		t.Fatalf("invalid Table (%v): %s", err, a.Body)
	}
	return got
}

func TestTable(t *testing.T) {
	s := apiserver.NewStorage(apiserver.StorageOptions{})
	apply(t, s, testkit.WidgetCRD)
	const born = "2026-01-02T03:04:05Z"
	now := func() time.Time { return time.Date(2026, 1, 2, 4, 5, 5, 0, time.UTC) }
	apply(t, s, fmt.Sprintf("{apiVersion: example.com/v1, kind: Widget, metadata: {name: full, creationTimestamp: %q}, spec: {color: red, size: 3, weight: 2, born: %q}, status: {ready: true}}", born, born))
	apply(t, s, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: odd}, spec: {color: {a: [1]}, size: "3", weight: 0.5, born: never}, status: {ready: "true"}}`)
	apply(t, s, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: void}}`)
	h := readapi.NewHandler(s, readapi.HandlerOptions{Now: now})
	got := tableOf(t, get(h, widgetsPath, "Accept", asTable))
	var columns []string
	for _, c := range got.ColumnDefinitions {
		columns = append(columns, fmt.Sprint(c.Name, " ", c.Type, " ", c.Priority))
	}
	wantColumns := []string{"Name string 0", "Color string 0", "Size integer 0", "Weight number 1",
		"Ready boolean 0", "Born date 0"}
	if diff := cmp.Diff(wantColumns, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	var rows [][]any
	for _, r := range got.Rows {
		rows = append(rows, r.Cells)
		if !strings.Contains(string(r.Object.Raw), `"kind":"PartialObjectMetadata"`) {
			t.Errorf("the row's object is %s, want a PartialObjectMetadata", r.Object.Raw)
		}
	}
	want := [][]any{
		{"full", "red", 3.0, 2.0, true, "61m"},
		{"odd", `{"a":[1]}`, nil, 0.5, nil, "<invalid>"},
		{"void", nil, nil, nil, nil, nil},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}

	one := tableOf(t, get(h, inDefaultPath+"/full?includeObject=None", "Accept", asTable))
	if len(one.Rows) != 1 || len(one.Rows[0].Object.Raw) != 0 || one.ResourceVersion == "" {
		t.Errorf("table without objects = %+v, want one row", one)
	}
	one = tableOf(t, get(h, inDefaultPath+"/full?includeObject=Object", "Accept", asTable))
	if len(one.Rows) != 1 || !strings.Contains(string(one.Rows[0].Object.Raw),
		`"apiVersion":"example.com/v1"`) {
		t.Errorf("table with objects = %+v, want one row", one)
	}
	if other := tableOf(t, get(h, "/apis/example.com/v1beta1/widgets", "Accept",
		asTable)); len(other.ColumnDefinitions) != 2 || other.ColumnDefinitions[1].Name != "Age" ||
		other.Rows[0].Cells[1] != "61m" {
		t.Errorf("table of a version without columns = %+v, want name and age", other)
	}
}

// TestBrokenColumn verifies that a column with an invalid path and all later columns are dropped.
func TestBrokenColumn(t *testing.T) {
	columns := []crd.Column{{Name: "A", JSONPath: ".a"}, {Name: "B", JSONPath: ".b["},
		{Name: "C", JSONPath: ".c"}}
	s := apiserver.NewStorage(apiserver.StorageOptions{})
	if err := s.SetType(readapi.Type{Group: "example.com", Names: crd.Names{Plural: "gadgets", Kind: "Gadget"},
		Versions: []readapi.Version{{Name: "v1", Columns: columns}}}); err != nil {
		t.Fatal(err)
	}
	got := tableOf(t, get(handlerOf(s), "/apis/example.com/v1/gadgets", "Accept", asTable))
	if len(got.ColumnDefinitions) != 2 {
		t.Errorf("the columns are %+v, want 2", got.ColumnDefinitions)
	}
}
