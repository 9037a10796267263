package filesource

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// TestCollected verifies which types the sources have collected, without files that were deleted. Reads of
// others fail, and answers about incomplete types have a warning.
func TestCollected(t *testing.T) {
	type files = map[string]string
	const definition = "resources/customresourcedefinitions.apiextensions.k8s.io/v1-preferredversion/cluster/w.yaml"
	const errorsFile = "cluster-resources/custom-resource-definitions-errors.json"
	const customErrors = "cluster-resources/custom-resources/custom-resources-errors.json"
	const customList = "cluster-resources/custom-resources/widgets.example.com/web.json"
	const noList = "403 NotCollected0 of more"
	const emptyList = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitionList\nitems: []\n"
	bundle, plain, object := files{definition: widgetCRD}, files{"crd.yaml": widgetCRD}, files{"a.yaml": widget("a", "red")}
	full := files{definition: widgetCRD, "resources/widgets.example.com/namespaces/web/a.yaml": widget("a", "red")}
	list := files{"list.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(widget("a", "red"), "\n", "\n  ") + "\n"}
	deleted := files{"a.yaml": widget("z", "red"), "b.yaml": emptyList, errorsFile: `["denied"]`,
		"c.yaml": "kind: APIServiceList\napiVersion: apiregistration.k8s.io/v1\nitems: []\n",
		"e.yaml": strings.Replace(widget("x", "red"), "/v1", "/v2", 1),
		"d.yaml": strings.ReplaceAll(list["list.yaml"], "name: a,", "name: y,")}
	widgetType := widgets.WithVersion("v1")
	apiServices := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1",
		Resource: "apiservices"}
	for name, tt := range map[string]struct {
		gvr     schema.GroupVersionResource
		want    string
		sources []files
	}{
		"a bundle with a definition":         {widgetType, "403 NotCollected0 of more", []files{bundle}},
		"and an object of another source":    {widgetType, "200 1 of more", []files{bundle, object}},
		"and a list of another source":       {widgetType, "200 1", []files{bundle, list}},
		"and a definition of another source": {widgetType, "403 NotCollected0 of more", []files{bundle, plain}},
		"and another bundle":                 {widgetType, "200 1 of more", []files{full, bundle}},
		"a bundle with objects":              {widgetType, "200 1", []files{full}},
		"a definition":                       {widgetType, "200 0 with a warning", []files{plain}},
		"a broken file":                      {widgetType, "200 1 of more", []files{full, {"a.yaml": "a: ["}}},
		"unreadable objects":                 {widgetType, "200 1 of more", []files{full, {customErrors: `{"widgets.example.com": "denied"}`}}},
		"no trace of definitions":            {crd.GVR, "404 0", []files{object}},
		"an empty list of definitions":       {crd.GVR, "200 0", []files{{"a.yaml": emptyList}}},
		"unreadable definitions":             {crd.GVR, "403 NotCollected0 of more", []files{{errorsFile: `["denied"]`}}},
		"definitions":                        {crd.GVR, "200 1", []files{bundle}},
		"no trace of APIServices":            {apiServices, "404 0", []files{bundle}},
		"no trace of a version":              {widgets.WithVersion("v2"), "404 NotFound0", []files{object}},
		"an empty array for a list":          {widgetType, "200 0 with a warning", []files{plain, {customList: "[]"}}},
		"null for a list":                    {widgetType, noList, []files{plain, {customList: "null"}}},
		"no fields for a list":               {widgetType, noList, []files{plain, {customList: "{}"}}},
		"no items for a list":                {widgetType, noList, []files{plain, {customList: `{"items":null}`}}},
		"null for an item":                   {widgetType, noList, []files{plain, {customList: "[null]"}}},
		"an empty file for a list":           {widgetType, noList, []files{plain, {customList: ""}}},
		"an empty file":                      {widgetType, "200 1 of more", []files{full, {"a.json": " \n"}}},
		"a Status for a list":                {widgetType, "200 0 of more", []files{plain, {customList: `{"kind":"Status","apiVersion":"v1"}`}}},
		"an error of all definitions":        {widgetType, "200 1 of more", []files{full, {customErrors: `{"crdList":"denied"}`}}},
		"an error of a query without type":   {widgetType, "200 1 of more", []files{full, {"meta/query-time.json": `[{"queryobj":"","error":{}}]`}}},
		"cut errors of queries":              {widgetType, "200 1 of more", []files{full, {"meta/query-time.json": `[{`}}},
		"a separator of oc":                  {widgetType, noList, []files{plain, {"namespaces/web/example.com/widgets.yaml": "---\n"}}},
		"null of Velero":                     {widgetType, "200 1 of more", []files{full, {"resources/widgets.example.com/namespaces/web/b.json": "null"}}},
		"values in folders like those of oc": {widgetType, "200 1", []files{full, {"namespaces/web/app/values.yaml": "a: 1"}}},
		"objects in another version":         {widgetType, "200 1 with a warning", []files{object, {"b.yaml": strings.Replace(widget("b", "red"), "/v1", "/v2", 1)}}},
		"an empty file for errors":           {crd.GVR, noList, []files{{errorsFile: ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, source := range tt.sources {
				paths = append(paths, writeTree(t, source))
				for name, text := range deleted {
					writeFile(t, filepath.Join(paths[len(paths)-1], "deleted", name), text)
				}
			}
			s := openSource(t, Options{Paths: paths})
			for _, dir := range paths {
				must(t, os.RemoveAll(filepath.Join(dir, "deleted")))
			}
			must(t, s.Refresh(t.Context()))
			recorder := httptest.NewRecorder()
			path := "/apis/" + tt.gvr.GroupVersion().String() + "/" + tt.gvr.Resource
			s.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
			var answer struct {
				Reason string
				Items  []any
			}
			_ = json.Unmarshal(recorder.Body.Bytes(), &answer) // text for unknown types
			got := fmt.Sprintf("%d %s%d", recorder.Code, answer.Reason, len(answer.Items))
			switch warnings := fmt.Sprint(recorder.Header()["Warning"]); {
			case strings.Contains(warnings, WarningPrefix):
				got += " of more"
			case warnings != "[]":
				got += " with a warning"
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
