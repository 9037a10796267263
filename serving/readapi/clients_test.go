package readapi_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

var widgetGVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

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

// journal records the events of an informer.
type journal struct {
	sync.Mutex
	events  []string
	changed chan struct{}
}

func (j *journal) record(kind string, obj any) {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	j.Lock()
	defer j.Unlock()
	j.events = append(j.events, kind+" "+key)
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { j.record("add", obj) },
		UpdateFunc: func(_, obj any) { j.record("update", obj) },
		DeleteFunc: func(obj any) {
			if _, unseen := obj.(cache.DeletedFinalStateUnknown); unseen {
				j.record("lost", obj)
				return
			}
			j.record("delete", obj)
		},
	}
}

// await waits until the last events are the expected ones.
func (j *journal) await(t *testing.T, want ...string) {
	t.Helper()
	for {
		j.Lock()
		got, grown := append([]string(nil), j.events...), j.changed
		j.Unlock()
		if len(got) >= len(want) && cmp.Equal(got[len(got)-len(want):], want) {
			return
		}
		select {
		case <-grown:
		case <-t.Context().Done():
			t.Fatalf("events %q do not end with %q", got, want)
		}
	}
}

// TestInformers verifies that client-go's informers, which use watch-lists, receive the initial objects and
// all changes.
func TestInformers(t *testing.T) {
	storage := newWidgets(t, apiserver.StorageOptions{})
	config := readapi.Config(handlerOf(storage))
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	m, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	whole := dynamicinformer.NewDynamicSharedInformerFactory(d, 0)
	partial := metadatainformer.NewSharedInformerFactory(m, 0)
	for name, informer := range map[string]cache.SharedIndexInformer{
		"dynamic":  whole.ForResource(widgetGVR).Informer(),
		"metadata": partial.ForResource(widgetGVR).Informer(),
	} {
		t.Run(name, func(t *testing.T) {
			j := recordEvents(t, informer)
			list, err := d.Resource(widgetGVR).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(informer.GetStore().ListKeys()) != len(list.Items) {
				t.Fatalf("the informer has the keys %v, want all widgets", informer.GetStore().ListKeys())
			}
			apply(t, storage, testkit.Widget("default", "fresh", "red"))
			apply(t, storage, testkit.Widget("default", "fresh", "green"))
			storage.Delete(widgetResource, "default", "fresh")
			j.await(t, "add default/fresh", "update default/fresh", "delete default/fresh")
		})
	}
}
