package requests

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/packed"
)

const (
	jsonGadget  = `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"managedFields":[{"manager":"m"}],"name":"g","namespace":"default","resourceVersion":"7"},"spec":{"text":"é\u003c","size":1,"ratio":0.5}}`
	jsonExpired = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`
)

// reply is a server's response to a list and to a watch.
type reply struct {
	code        int
	contentType string
	list, watch string
}

func replies() map[string]reply {
	const jsonType = "application/json"
	event := func(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }
	large := strings.Replace(jsonGadget, `"size":1`, `"size":"`+strings.Repeat("x", 5<<18)+`"`, 1)
	gadgets := func(items ...string) string {
		return `{"apiVersion":"example.com/v1","items":[` + strings.Join(items, ",") +
			`],"kind":"GadgetList","metadata":{"continue":"c","remainingItemCount":3,"resourceVersion":"9"}}`
	}
	const bookmark = `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`
	return map[string]reply{
		"usual": {200, jsonType + "; charset=utf-8", gadgets(jsonGadget, jsonGadget),
			event("ADDED", jsonGadget) + event("MODIFIED", jsonGadget) + event("DELETED", jsonGadget) +
				event("BOOKMARK", bookmark)},
		"large": {200, jsonType, gadgets(large, jsonGadget), event("ADDED", large) +
			event("ADDED", jsonGadget)},
		"none": {200, jsonType, gadgets(), ""},
		"built-in": {200, jsonType,
			`{"kind":"GadgetList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}}]}`,
			event("ERROR", jsonExpired)},
		"truncated": {200, jsonType, gadgets(jsonGadget, jsonGadget)[:300], event("ADDED", jsonGadget) +
			event("ADDED", jsonGadget)[:50]},
		"wrong": {200, jsonType, gadgets(`{"kind":1}`), event("ADDED", jsonGadget) +
			event("ADDED", `{"kind":1}`)},
		"unusual": {200, jsonType, `{"apiVersion":"example.com/v1","kind":"GadgetList","items":[` +
			jsonGadget + `],"items":[` + jsonGadget + "," + jsonGadget + `]}`, "{\n" +
			event("ADDED", jsonGadget)[1:]},
		"Status": {200, jsonType, jsonExpired, event("ADDED", jsonExpired)},
		"Table": {200, jsonType,
			`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[]}`, event("ADDED",
				`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`)},
		"metadata": {200, jsonType,
			`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}`, event("ADDED", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`)},
		"expired": {410, jsonType, jsonExpired, jsonExpired},
		"gateway": {502, "text/html", "<html>bad gateway</html>", "<html>bad gateway</html>"},
		"HTML":    {200, jsonType, "<html>log in</html>", "<html>log in</html>"},
		"CBOR":    {200, jsonType, "\xd9\xd9\xf7\xa0", "\xd9\xd9\xf7\xa0"},
		"nothing": {200, jsonType, "", ""},
	}
}

func (a reply) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.contentType)
	out := io.Writer(w)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		zipped := gzip.NewWriter(w)
		defer zipped.Close()
		out = zipped
	}
	w.WriteHeader(a.code)
	if r.URL.Query().Has("watch") {
		io.WriteString(out, a.watch)
	} else {
		io.WriteString(out, a.list)
	}
}

// toUnstructured returns lists and objects as the dynamic client returns them.
func toUnstructured(object runtime.Object) runtime.Object {
	switch object := object.(type) {
	case *packed.Object:
		return object.Unstructured()
	case *packed.List:
		list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{}}
		list.SetAPIVersion(object.APIVersion)
		list.SetKind(object.Kind)
		list.SetResourceVersion(object.ResourceVersion)
		list.SetContinue(object.Continue)
		list.SetRemainingItemCount(object.RemainingItemCount)
		for _, item := range object.Items {
			list.Items = append(list.Items, *item.Unstructured())
		}
		return list
	case *unstructured.UnstructuredList:
		if object == nil {
			return nil
		}
		// Get all fields, including missing ones.
		list := &unstructured.UnstructuredList{Items: object.Items}
		list.SetAPIVersion(object.GetAPIVersion())
		list.SetKind(object.GetKind())
		list.SetResourceVersion(object.GetResourceVersion())
		list.SetContinue(object.GetContinue())
		list.SetRemainingItemCount(object.GetRemainingItemCount())
		return list
	}
	return object
}

// receive lists and watches, and returns all results.
func receive(t *testing.T, r resource) []any {
	t.Helper()
	list, err := r.List(t.Context(), metav1.ListOptions{}, true)
	results := []any{toUnstructured(list), fmt.Sprint(err)}
	events, err := openEvents(t, r, metav1.ListOptions{})
	results = append(results, fmt.Sprint(err))
	if err != nil {
		return results
	}
	defer events.Close()
	for {
		event, _, err := events.Next()
		if err != nil && endsWatches(err) {
			return results
		}
		if err != nil {
			event = undecodableEvent(err)
		}
		// The error texts for invalid syntax differ.
		if status, ok := event.Object.(*metav1.Status); ok &&
			status.Reason == metav1.StatusReasonInternalError {
			status.Message, status.Details = "", nil
		}
		results = append(results, watch.Event{Type: event.Type, Object: toUnstructured(event.Object)})
		if err != nil {
			return results
		}
	}
}

// openEvents requests a watch.
func openEvents(t *testing.T, r resource, options metav1.ListOptions) (events, error) {
	t.Helper()
	ctx, a := newAttempt(t.Context(), time.Minute)
	t.Cleanup(a.end)
	return r.Events(ctx, options)
}

// newTestResource returns a resource that sends the requests of a client of NewClient.
func newTestResource(t *testing.T, host string, compressed bool, objects ObjectOptions) resource {
	t.Helper()
	own, err := NewClient(&rest.Config{Host: host, QPS: -1, DisableCompression: !compressed}, nil)
	must(t, err)
	r := newResource(own, gadgets, "default", objects, nil)
	return r
}

var (
	gadgets       = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	packedObjects = ObjectOptions{Packer: packed.NewPacker(nil)}
)

// TestRequestsEqualClientGo compares packed lists and watches with those of client-go's dynamic client.
func TestRequestsEqualClientGo(t *testing.T) {
	for name, reply := range replies() {
		for _, compressed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/gzip=%v", name, compressed), func(t *testing.T) {
				server := httptest.NewServer(reply)
				defer server.Close()
				stockClient, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1,
					DisableCompression: !compressed})
				must(t, err)
				want := receive(t, decodedResource{stockClient.Resource(gadgets).Namespace("default")})
				got := receive(t, newTestResource(t, server.URL, compressed, packedObjects))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-stock +packed)\n%.3000s", diff)
				}
			})
		}
	}
}

// TestRequestsPack checks the types of results, and which requests are sent.
func TestRequestsPack(t *testing.T) {
	var requests atomic.Int64
	var path, accept atomic.Value
	usual := replies()["usual"]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		path.Store(r.URL.String())
		accept.Store(r.Header.Get("Accept"))
		usual.ServeHTTP(w, r)
	}))
	defer server.Close()
	withoutManaged, err := packed.NewPruner(packed.Prune{ManagedFields: true})
	must(t, err)
	tests := map[string]struct {
		objects     ObjectOptions
		list, watch string // Accept headers
	}{
		"packed": {objects: packedObjects, list: wholeObjectContent, watch: wholeObjectContent},
		"metadata": {objects: ObjectOptions{Packer: packed.NewPacker(nil), Metadata: true}, list: metadataList,
			watch: metadataOfEvents},
		"without managedFields": {objects: ObjectOptions{Packer: packed.NewPacker(withoutManaged)},
			list:  "application/json;drop=metadata.managedFields,application/json",
			watch: "application/json;drop=metadata.managedFields,application/json"},
		"metadata without managedFields": {objects: ObjectOptions{Packer: packed.NewPacker(withoutManaged), Metadata: true},
			list: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;drop=metadata.managedFields," +
				"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
				"application/json;drop=metadata.managedFields,application/json",
			watch: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields," +
				"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
				"application/json;drop=metadata.managedFields,application/json"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			r := newTestResource(t, server.URL, false, test.objects)
			list, err := r.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b", Limit: 5}, true)
			must(t, err)
			if _, isPacked := list.(*packed.List); !isPacked {
				t.Errorf("the list is a %T, want a *packed.List", list)
			}
			if want := "/apis/example.com/v1/namespaces/default/gadgets?labelSelector=a%3Db&limit=5"; path.Load() != want {
				t.Errorf("requested %s, want %s", path.Load(), want)
			}
			if accept.Load() != test.list {
				t.Errorf("a list accepts %s, want %s", accept.Load(), test.list)
			}
			w, err := openEvents(t, r, metav1.ListOptions{ResourceVersion: "7"})
			must(t, err)
			defer w.Close()
			event, _, err := w.Next()
			must(t, err)
			if _, isPacked := event.Object.(*packed.Object); !isPacked {
				t.Errorf("the object of an event is a %T, want a *packed.Object", event.Object)
			}
			if want := "/apis/example.com/v1/namespaces/default/gadgets?resourceVersion=7&watch=true"; path.Load() != want {
				t.Errorf("requested %s, want %s", path.Load(), want)
			}
			if accept.Load() != test.watch {
				t.Errorf("a watch accepts %s, want %s", accept.Load(), test.watch)
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests, want 2", n)
			}
		})
	}
}

// TestListBreaksOff closes the connection in the middle of a list. A partial list must not be accepted.
func TestListBreaksOff(t *testing.T) {
	full := replies()["usual"].list
	for _, n := range []int{1, 100, len(full) - 1} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(len(full)))
			io.WriteString(w, full[:n])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}))
		if list, err := newTestResource(t, server.URL, false, packedObjects).List(t.Context(),
			metav1.ListOptions{}, true); err == nil {
			t.Errorf("connection closed after %d bytes: got the list %v, want an error", n, list)
		}
		server.Close()
	}
}

// TestListIsCancelled verifies that List returns an error if its context ends while the server sends the
// list.
func TestListIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, replies()["usual"].list[:200])
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	if _, err := newTestResource(t, server.URL, false, packedObjects).List(ctx, metav1.ListOptions{},
		true); err == nil {
		t.Error("List() with a cancelled context succeeded, want an error")
	}
}

// TestRateLimitIsShared checks that one rate limit applies to the requests of all types and of other clients.
func TestRateLimitIsShared(t *testing.T) {
	made, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1", QPS: 3, Burst: 4}, nil)
	must(t, err)
	limit := made.defaultREST.GetRateLimiter()
	for range 4 {
		if !limit.TryAccept() {
			t.Fatal("TryAccept() = false within the configured burst")
		}
	}
	if unlimited, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1", QPS: -1}, nil); err != nil ||
		unlimited.defaultREST.GetRateLimiter() != nil {
		t.Errorf("NewClient() with QPS -1 has a rate limit, or failed: %v", err)
	}
}

// TestCheckList verifies that no answer without a list is taken for an empty list.
func TestCheckList(t *testing.T) {
	for body, want := range map[string]string{
		`{"apiVersion":"v1","kind":"WidgetList","items":[]}`:                                           "",
		`{"apiVersion":"v1","kind":"WidgetList","items":null}`:                                         "",
		`{"apiVersion":"v1","kind":"Widgets","metadata":{"resourceVersion":"1"}}`:                      "",
		`{"apiVersion":"v1","kind":"Odd","metadata":{"name":"a"},"items":[{"metadata":{"name":"b"}}]}`: "",
		`{"apiVersion":"v1","kind":"Widget","metadata":{"name":"a"}}`:                                  "kind Widget, which is no list",
		`{"apiVersion":"meta.k8s.io/v1","kind":"Table","rows":[]}`:                                     "kind Table, which is no list",
		`{"apiVersion":"v1","kind":"Status","status":"Success"}`:                                       "kind Status, which is no list",
		`{"apiVersion":"v1","kind":"Status","status":"Failure","message":"gone","code":410}`:           "gone",
	} {
		list := &unstructured.UnstructuredList{}
		must(t, list.UnmarshalJSON([]byte(body)))
		if err := CheckList(list); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("CheckList(%s) = %v, want %q", body, err, want)
		}
	}
}
