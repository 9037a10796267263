package readapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

// shardHalves returns the selectors of the two halves of the hash space.
func shardHalves(field string) []string {
	return []string{
		fmt.Sprintf("shardRange(object.%s, '%s', '0x8000000000000000')", field, readapi.ShardStart),
		fmt.Sprintf("shardRange(object.%s, '0x8000000000000000', '%s')", field, readapi.ShardEnd),
	}
}

// newManyWidgets returns a storage with forty widgets in four namespaces.
func newManyWidgets(t *testing.T) *apiserver.Storage {
	t.Helper()
	s := apiserver.NewStorage(apiserver.StorageOptions{})
	apply(t, s, testkit.WidgetCRD)
	for i := range 40 {
		apply(t, s, testkit.Widget(string(rune('a'+i%4)), fmt.Sprintf("w%02d", i), []string{"red", "green"}[i/4%2]))
	}
	return s
}

// TestShardSelector compares the lists of shards with the results of apimachinery's selectors.
func TestShardSelector(t *testing.T) {
	s := newManyWidgets(t)
	h := handlerOf(s)
	items, _, _ := unstructured.NestedSlice(get(h, widgetsPath).Decoded(t).Object, "items")
	for _, field := range []string{"metadata.uid", "metadata.namespace"} {
		halves := shardHalves(field)
		for _, text := range append(halves, halves[1]+" || "+halves[0], `shardRange(object.`+field+
			`,"0x4000000000000000","0xc000000000000000")`) {
			selector, err := readapi.ParseShardSelector(text)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{}
			for _, item := range items {
				u := &unstructured.Unstructured{Object: item.(map[string]any)}
				if selector.Contains(selector.Key.Hash(u)) && u.GetLabels()["color"] == "red" {
					want = append(want, readapi.ObjectKey(u.GetNamespace(), u.GetName()))
				}
			}
			var got []string
			query := url.Values{"shardSelector": {text}, "labelSelector": {"color=red"}, "limit": {"3"}}
			for pages := 0; pages == 0 || query.Get("continue") != ""; pages++ {
				page := get(h, widgetsPath+"?"+query.Encode())
				got = append(got, page.Keys(t)...)
				list := page.Decoded(t)
				query.Set("continue", list.GetContinue())
				if info, _, _ := unstructured.NestedString(list.Object, "metadata", "shardInfo",
					"selector"); info != selector.String() {
					t.Errorf("selector %s: shardInfo of the page = %q, want the selector", text, info)
				}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("selector %s (-want +got):\n%s", text, diff)
			}
		}
	}
}

func TestInvalidShardSelectors(t *testing.T) {
	h := handlerOf(newWidgets(t, apiserver.StorageOptions{}))
	for _, text := range []string{
		"uid", "shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0', '0x8')", "shardRange(object.metadata.uid, 0, 1)",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000001')",
		shardHalves("metadata.uid")[0] + " || " + shardHalves("metadata.namespace")[1], shardHalves("metadata.uid")[0] +
			" ||", "||",
		shardHalves("metadata.uid")[0] + " && " + shardHalves("metadata.uid")[1], "!" + shardHalves("metadata.uid")[0],
	} {
		for _, verb := range []string{"", "&watch=1"} {
			if got := get(h, widgetsPath+"?shardSelector="+url.QueryEscape(text)+
				verb); got.Code != http.StatusBadRequest {
				t.Errorf("%q%s = %d %s, want 400", text, verb, got.Code, got.Body)
			}
		}
	}
}

// TestShardWatch verifies that watches of the two halves of a type report each change once.
func TestShardWatch(t *testing.T) {
	s := newManyWidgets(t)
	server := httptest.NewServer(handlerOf(s))
	defer server.Close()
	from := get(handlerOf(s), widgetsPath).Decoded(t).GetResourceVersion()
	for i := range 20 {
		apply(t, s, testkit.Widget("a", fmt.Sprintf("w%02d", 4*(i%10)), fmt.Sprint("c", i))) // changes
	}
	reported := map[string]int{}
	for _, text := range shardHalves("metadata.uid") {
		selector, err := readapi.ParseShardSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		query := url.Values{"watch": {"1"}, "resourceVersion": {from}, "timeoutSeconds": {"1"},
			"shardSelector": {text}}
		response, err := http.Get(server.URL + widgetsPath + "?" + query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		events := json.NewDecoder(response.Body)
		for events.More() {
			var event struct{ Object map[string]any }
			if err := events.Decode(&event); err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{Object: event.Object}
			if !selector.Contains(selector.Key.Hash(u)) {
				t.Errorf("the watch of %s sent %s, which is in the other half", text, u.GetName())
			}
			reported[u.GetResourceVersion()]++
		}
		response.Body.Close()
	}
	if len(reported) != 20 {
		t.Errorf("%d changes are reported, want 20", len(reported))
	}
}
