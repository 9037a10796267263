package readapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

// TestDiscoveryClient verifies that client-go gets the same types from aggregated and from legacy discovery.
func TestDiscoveryClient(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{})
	pods := readapi.Type{Namespaced: true, Versions: []readapi.Version{{Name: "v1"}}}
	pods.Names.Plural, pods.Names.Kind, pods.Names.ShortNames = "pods", "Pod", []string{"po"}
	if err := s.SetType(pods); err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(readapi.Config(handlerOf(s)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"v1 pods Pod true [po] [] [get list watch]",
		"apiregistration.k8s.io/v1 apiservices APIService false [] [api-extensions] [get list watch]",
		"apiregistration.k8s.io/v1 apiservices/status APIService false [] [] [get]",
		"apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition false [crd crds] [api-extensions] [get list watch]",
		"apiextensions.k8s.io/v1 customresourcedefinitions/status CustomResourceDefinition false [] [] [get]",
		"example.com/v1 widgets Widget true [wd] [all] [get list watch]",
		"example.com/v1 widgets/status Widget true [] [] [get]",
		"example.com/v1beta1 widgets Widget true [wd] [all] [get list watch]",
	}
	for name, c := range map[string]discovery.DiscoveryInterface{"aggregated": client,
		"legacy": client.WithLegacy()} {
		t.Run(name, func(t *testing.T) {
			groups, lists, err := c.ServerGroupsAndResources()
			if err != nil {
				t.Fatal(err)
			}
			var names, got []string
			for _, g := range groups {
				names = append(names, g.Name+" "+g.PreferredVersion.Version)
			}
			if diff := cmp.Diff([]string{" v1", "apiregistration.k8s.io v1", "apiextensions.k8s.io v1",
				"example.com v1"}, names); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			for _, list := range lists {
				for _, r := range list.APIResources {
					got = append(got, fmt.Sprint(list.GroupVersion, " ", r.Name, " ", r.Kind, " ",
						r.Namespaced, " ", r.ShortNames, " ", r.Categories, " ", r.Verbs))
				}
			}
			slices.Sort(got) // client-go reads the documents in any order
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

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

func TestOpenAPI(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	paths := get(h, "/openapi/v3").Decoded(t).Object["paths"].(map[string]any)
	for name := range paths {
		url := paths[name].(map[string]any)["serverRelativeURL"].(string)
		if got := get(h, url); got.Code != 200 || !strings.HasPrefix(got.Body, `{"components":`) {
			t.Errorf("%s = %d %s, want an OpenAPI document", url, got.Code, got.Body)
		}
	}
	if len(paths) != 4 || paths["apis/example.com/v1"] == nil {
		t.Errorf("the OpenAPI documents are %v, want 4", paths)
	}
	document := get(h, "/openapi/v3/apis/example.com/v1").Body
	for _, want := range []string{
		`"com.example.v1.Widget":{`, `"description":"Its color."`,
		`"/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status":{`,
		`"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"WidgetList","version":"v1"}]`,
	} {
		if !strings.Contains(document, want) {
			t.Errorf("no %s in %s", want, document)
		}
	}
	if got := get(h, "/openapi/v3/apis/example.org/v1"); got.Code != 404 {
		t.Errorf("GET of an unknown document = %d, want 404", got.Code)
	}
}
