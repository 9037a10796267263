package readapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

type watchReader struct {
	response *http.Response
	decoder  *json.Decoder
	cancel   context.CancelFunc
}

// startWatch opens a watch that ends with the test.
func startWatch(t testing.TB, h http.Handler, path, query string, headers ...string) *watchReader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://in-process"+path+
		"?watch=true&"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := readapi.NewTransport(h).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); response.Body.Close() })
	return &watchReader{response, json.NewDecoder(response.Body), cancel}
}

// next returns the next event as "TYPE namespace/name" with annotations and spec.color.
func (w *watchReader) next(t testing.TB) string {
	t.Helper()
	var event struct {
		Type   string
		Object map[string]any
	}
	if err := w.decoder.Decode(&event); err != nil {
		return err.Error()
	}
	u := unstructured.Unstructured{Object: event.Object}
	text := event.Type + " " + readapi.ObjectKey(u.GetNamespace(), u.GetName())
	if color, ok, _ := unstructured.NestedString(u.Object, "spec", "color"); ok {
		text += " " + color
	}
	if event.Type == "BOOKMARK" {
		text += fmt.Sprint(u.GetResourceVersion(), u.GetAnnotations())
	}
	if event.Type == "ERROR" {
		text += fmt.Sprint(u.Object["reason"], u.Object["code"], u.Object["message"])
	}
	return text
}

func (w *watchReader) expect(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, w.next(t))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestStalledWatchExpires checks a client that stops reading in the middle of an event until the history is
// dropped.
func TestStalledWatchExpires(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{History: 2})
	w := startWatch(t, handlerOf(s), widgetsPath, "resourceVersion="+s.ResourceVersion())
	apply(t, s, testkit.Widget("default", "a", "blue"))
	firstByte := make([]byte, 1)
	if _, err := io.ReadFull(w.response.Body, firstByte); err != nil {
		t.Fatal(err)
	}
	wantPrefix := "ERROR Expired410too old resource version: " + s.ResourceVersion()
	for n := range 10 {
		apply(t, s, testkit.Widget("default", "a", fmt.Sprint("color-", n)))
	}
	w.decoder = json.NewDecoder(io.MultiReader(bytes.NewReader(firstByte), w.response.Body))
	w.expect(t, "MODIFIED default/a blue")
	if got := w.next(t); !strings.HasPrefix(got, wantPrefix) {
		t.Errorf("the watch sent %s, want %s", got, wantPrefix)
	}
	w.expect(t, "EOF")
}

func TestBookmarks(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{})
	h := readapi.NewHandler(s, readapi.HandlerOptions{BookmarkInterval: time.Millisecond})
	// Changes of other types also raise the version of bookmarks.
	apply(t, s, strings.Replace(testkit.WidgetCRD, "[all]", "[all, some]", 1))
	begin := s.ResourceVersion()
	apply(t, s, "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.elsewhere}}")
	startWatch(t, h, widgetsPath, "allowWatchBookmarks=true&resourceVersion="+begin).expect(t,
		"BOOKMARK "+s.ResourceVersion()+"map[]", "BOOKMARK "+s.ResourceVersion()+"map[]")
}

// TestWatchEndsWithType verifies that when a type is removed, a watch sends the deletions and ends.
func TestWatchEndsWithType(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{})
	h := handlerOf(s)
	w := startWatch(t, h, inDefaultPath, "resourceVersion="+s.ResourceVersion())
	definitionsWatch := startWatch(t, h, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"resourceVersion="+s.ResourceVersion())
	s.Delete(crd.GVR.GroupResource(), "", "widgets.example.com")
	w.expect(t, "DELETED default/a red", "DELETED default/b green", "EOF")
	definitionsWatch.expect(t, "DELETED widgets.example.com")
}

// TestWatchIsCancelled closes watches on the client's side. TestMain fails if their goroutines remain.
func TestWatchIsCancelled(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{})
	w := startWatch(t, handlerOf(s), widgetsPath, "resourceVersion="+s.ResourceVersion())
	w.cancel()
	w.expect(t, context.Canceled.Error())
	closed := startWatch(t, handlerOf(s), widgetsPath, "")
	closed.response.Body.Close()
	if _, err := closed.response.Body.Read(make([]byte, 1)); err == nil {
		t.Error("reading a closed body succeeded, want an error")
	}
}

// TestEndingWatches verifies that when StopWatches is closed, watches end with a bookmark.
func TestEndingWatches(t *testing.T) {
	s := newWidgets(t, apiserver.StorageOptions{})
	stopWatches := make(chan struct{})
	h := readapi.NewHandler(s, readapi.HandlerOptions{StopWatches: stopWatches})
	w := startWatch(t, h, widgetsPath, "allowWatchBookmarks=true&resourceVersion="+s.ResourceVersion())
	apply(t, s, testkit.Widget("other", "new", "red"))
	w.expect(t, "ADDED other/new red")
	apply(t, s, testkit.Widget("other", "new", "green"))
	close(stopWatches)
	w.expect(t, "MODIFIED other/new green", "BOOKMARK "+s.ResourceVersion()+"map[]", "EOF")
}

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
		query := url.Values{"watch": {"1"}, "resourceVersion": {from}, "timeoutSeconds": {"3"},
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
