package filesource

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
)

// TestCollected verifies which types the sources have collected. Others are refused, or not listed as types.
// Clients of Config, which learn types from definitions, are never refused without an error of a tool.
func TestCollected(t *testing.T) {
	type files = map[string]string
	const definition = "resources/customresourcedefinitions.apiextensions.k8s.io/v1-preferredversion/cluster/w.yaml"
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(widget("a", "red"), "\n", "\n  ") + "\n"
	bundle, plain, object := files{definition: widgetCRD}, files{"crd.yaml": widgetCRD}, files{"a.yaml": widget("a", "red")}
	full := files{definition: widgetCRD, "resources/widgets.example.com/namespaces/web/a.yaml": widget("a", "red")}
	const errorsOf, definitions = "cluster-resources/custom-resource-definitions-errors.json", "customresourcedefinitions"
	const emptyList = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitionList\nitems: []\n"
	widgetType, definitionType := widgets.WithVersion("v1"), crd.GVR
	serviceType := schema.GroupVersionResource{Group: apiServiceKind.Group, Version: "v1", Resource: "apiservices"}
	for name, tt := range map[string]struct {
		gvr     schema.GroupVersionResource
		sources []files
		want    string
	}{
		"a bundle with a definition":            {widgetType, []files{bundle}, "403"},
		"and an object of another source":       {widgetType, []files{bundle, object}, "1 of more"},
		"and a list of another source":          {widgetType, []files{bundle, {"list.yaml": list}}, "1"},
		"and a definition of another source":    {widgetType, []files{bundle, plain}, "403"},
		"and another bundle":                    {widgetType, []files{full, bundle}, "1 of more"},
		"a bundle with objects":                 {widgetType, []files{full}, "1"},
		"a definition":                          {widgetType, []files{plain}, "0"},
		definitions + " without a trace":        {definitionType, []files{object}, "403, internally 0"},
		definitions + " in an empty list":       {definitionType, []files{{"a.yaml": emptyList}}, "0"},
		definitions + " that could not be read": {definitionType, []files{{errorsOf: `["denied"]`}}, "403"},
		definitions:                             {definitionType, []files{bundle}, "1"},
		"apiservices without a trace":           {serviceType, []files{bundle}, "403, internally 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, source := range tt.sources {
				paths = append(paths, writeTree(t, source))
			}
			s := openSource(t, Options{Paths: paths})
			objects, err := dynamic.NewForConfigOrDie(s.Config()).Resource(tt.gvr).List(t.Context(), metav1.ListOptions{})
			got := "403"
			if err == nil {
				got = fmt.Sprint(len(objects.Items))
			}
			recorder := httptest.NewRecorder()
			s.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/apis/"+tt.gvr.GroupVersion().String()+"/"+tt.gvr.Resource, nil))
			switch {
			case recorder.Code == 403 && err == nil:
				got = "403, internally " + got
			case err == nil && s.Incomplete(tt.gvr.GroupResource()) != "":
				got += " of more"
			}
			types, _ := s.storage.ServedTypes()
			if isListed := strings.Contains(fmt.Sprint(types), tt.gvr.Resource); got != tt.want || isListed == strings.Contains(got, ",") {
				t.Errorf("got %s, want %s; listed: %t", got, tt.want, isListed)
			}
		})
	}
}
