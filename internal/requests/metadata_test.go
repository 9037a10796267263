package requests

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/packed"
)

// strictServer is an API server that accepts requests for metadata only with the right kind:
// PartialObjectMetadataList for lists, PartialObjectMetadata for watches. It responds to others with 406.
type strictServer struct {
	// rejectsMetadata rejects requests for metadata even if they also accept whole objects.
	rejectsMetadata bool
	// list, if set, is the response to a list.
	list string

	mu       sync.Mutex
	accepted []string
}

const notAcceptable = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"you requested PartialObjectMetadata, but the requested object is a list","reason":"NotAcceptable","code":406}`

func (p *strictServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	watches := r.URL.Query().Has("watch")
	kind := "PartialObjectMetadataList"
	if watches {
		kind = "PartialObjectMetadata"
	}
	wants := "whole"
	for parameter := range strings.SplitSeq(first, ";") {
		if as, found := strings.CutPrefix(parameter, "as="); found {
			wants = as
		}
	}
	p.mu.Lock()
	p.accepted = append(p.accepted, wants)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if wants != "whole" && (p.rejectsMetadata || wants != kind) {
		w.WriteHeader(http.StatusNotAcceptable)
		io.WriteString(w, notAcceptable)
		return
	}
	object := jsonGadget
	list := `{"apiVersion":"example.com/v1","kind":"GadgetList","metadata":{"resourceVersion":"9"},"items":[` + object + `]}`
	if wants != "whole" {
		object = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"g","namespace":"default","resourceVersion":"7"}}`
		list = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"9"},"items":[` + object + `]}`
	}
	if p.list != "" {
		list = strings.ReplaceAll(p.list, "OBJECT", object)
	}
	if watches {
		list = `{"type":"ADDED","object":` + object + "}\n"
	}
	io.WriteString(w, list)
}

// TestMetadataIsRequested verifies the requested media types and the received kinds for servers that support
// metadata and for one that does not.
func TestMetadataIsRequested(t *testing.T) {
	const duplicateItems = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[OBJECT],"items":[OBJECT],"metadata":{"resourceVersion":"9"}}`
	for name, tt := range map[string]struct {
		server *strictServer
		kind   string
		want   string // the requests: two lists and a watch
	}{
		"supported": {&strictServer{}, "PartialObjectMetadata",
			"[PartialObjectMetadataList PartialObjectMetadataList PartialObjectMetadata]"},
		"with a duplicate field": {&strictServer{list: duplicateItems}, "PartialObjectMetadata",
			"[PartialObjectMetadataList PartialObjectMetadataList PartialObjectMetadataList PartialObjectMetadataList PartialObjectMetadata]"},
		"not supported": {&strictServer{rejectsMetadata: true}, "Gadget",
			"[PartialObjectMetadataList whole whole whole]"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.server)
			defer server.Close()
			own, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, nil)
			must(t, err)
			r := newResource(own, gadgets, "default", ObjectOptions{Packer: packed.NewPacker(nil),
				Metadata: true}, nil)
			for range 2 {
				list, err := r.List(t.Context(), metav1.ListOptions{}, true)
				must(t, err)
				if items := listedKinds(list); fmt.Sprint(items) != "["+tt.kind+"]" {
					t.Errorf("the list %T has items of the kinds %v, want [%s]", list, items, tt.kind)
				}
			}
			w, err := openEvents(t, r, metav1.ListOptions{})
			must(t, err)
			defer w.Close()
			for event, _, err := w.Next(); err == nil; event, _, err = w.Next() {
				if kind := event.Object.GetObjectKind().GroupVersionKind().Kind; event.Type != watch.Added ||
					kind != tt.kind {
					t.Errorf("the watch sent %s of a %s, want ADDED", event.Type, kind)
				}
			}
			tt.server.mu.Lock()
			defer tt.server.mu.Unlock()
			if got := fmt.Sprint(tt.server.accepted); got != tt.want {
				t.Errorf("the requests are %s, want %s", got, tt.want)
			}
		})
	}
}

func listedKinds(list runtime.Object) (kinds []string) {
	switch list := toUnstructured(list).(type) {
	case interface {
		EachListItem(func(runtime.Object) error) error
	}:
		_ = list.EachListItem(func(o runtime.Object) error { // the callback returns no error
			kinds = append(kinds, o.GetObjectKind().GroupVersionKind().Kind)
			return nil
		})
	}
	return kinds
}

// listBodies are bodies of responses to list requests.
var listBodies = []string{
	`{"apiVersion":"example.com/v1","kind":"GadgetList","metadata":{"continue":"","resourceVersion":"900","remainingItemCount":2},"items":[` + jsonGadget + "," + jsonGadget + `]}`,
	`{"apiVersion":"v1","kind":"GadgetList","metadata":{}}`,
	`{"apiVersion":"v1","kind":"GadgetList","items":null}`,
	`{"apiVersion":"v1","kind":"GadgetList","items":[null]}`,
	`{"apiVersion":"v1","kind":"GadgetList","items":[1]}`,
	`{"apiVersion":"v1","kind":"GadgetList","items":[{"a":1}],"items":[{"b":1}]}`,
	`{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a"}},{"kind":"Other"},{"apiVersion":"v2"}]}`,
	`{"apiVersion":"v1","kind":"Gadgets","items":[{}]}`,
	`{"apiVersion":"v1","kind":"List","items":[{}]}`,
	`{"apiVersion":"a/b/c","kind":"GadgetList","items":[]}`,
	`{"apiVersion":"/","kind":"GadgetList","items":[]}`,
	`{"apiVersion":"v1","kind":"GadgetList","Kind":"OtherList","items":[{"metadata":{"name":"a"}}]}`,
	`{"apiVersion":"v1","kind":"Gadget","items":[{"a":1}],"metadata":{"name":"a"}}`,
	`{"apiVersion":"v1","kind":"GadgetList","items":[{"n":1e999}]}`,
	`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`,
	jsonExpired, jsonGadget, "", "null", "[]", "<html>",
}

// compareWithClientGo compares the result of DecodeList, if it decodes the list, with client-go's result.
func compareWithClientGo(t *testing.T, body string) {
	t.Helper()
	got, want := &unstructured.UnstructuredList{}, &unstructured.UnstructuredList{}
	if !DecodeList([]byte(body), got) {
		return
	}
	if _, _, err := unstructured.UnstructuredJSONScheme.Decode([]byte(body), nil, want); err != nil {
		t.Fatalf("%s: client-go returns %v", body, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-stock +decoded)\n%s", body, diff)
	}
}

func FuzzDecodedListsAreStock(f *testing.F) {
	for _, body := range listBodies {
		f.Add(body)
	}
	f.Fuzz(compareWithClientGo)
}

// TestClientListsAreStock compares the lists of a Client with the lists of client-go's dynamic client.
func TestClientListsAreStock(t *testing.T) {
	all := replies()
	for n, body := range listBodies {
		all[fmt.Sprint("body ", n)] = reply{200, "application/json", body, ""}
	}
	for name, reply := range all {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(reply)
			defer server.Close()
			config := &rest.Config{Host: server.URL, QPS: -1}
			stock, err := dynamic.NewForConfig(config)
			must(t, err)
			own, err := NewClient(config, nil)
			must(t, err)
			want, wantErr := stock.Resource(gadgets).Namespace("default").List(t.Context(),
				metav1.ListOptions{Limit: 5})
			got, gotErr := own.Resource(gadgets).Namespace("default").List(t.Context(),
				metav1.ListOptions{Limit: 5})
			if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
				t.Errorf("(-stock +own) %v, %v\n%s", wantErr, gotErr, diff)
			}
		})
	}
}

// TestOpenWatchesReleaseRequest verifies that the stream of a watch retains the response, but neither the
// request nor the headers, a kilobyte for each type. An idle watch ends with its context.
func TestOpenWatchesReleaseRequest(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config := &rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	var kept *http.Response
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			kept = response
			cancel() // the watch is open
			return response, err
		})
	})
	w := newInlineListWatch(t, config, nil, packedObjects)
	// or one derived from ctx
	_ = w.WatchInline(ctx, &metav1.ListOptions{ResourceVersion: "7"}, func(watch.Event) bool { return true })
	if kept == nil || kept.ProtoMajor != 2 || kept.Request != nil || kept.Header != nil {
		t.Errorf("the stream retains the response %+v, want no request and headers", kept)
	}
}
