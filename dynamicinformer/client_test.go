package dynamicinformer_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
)

const gadget = `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"managedFields":[{"manager":"m"}],"name":"g","namespace":"default","resourceVersion":"7"},"spec":{"text":"é\u003c","size":1,"ratio":0.5}}`

var gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}

// cannedResponse is a server's response to a get, list or watch.
type cannedResponse struct {
	code        int
	contentType string
	body        string
}

func cannedResponses() map[string]cannedResponse {
	const jsonType = "application/json"
	const expired = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`
	// This is just larger than any retained buffer, because large data is slow with the race detector.
	large := strings.Replace(gadget, `"size":1`, `"size":"`+strings.Repeat("x", 5<<18)+`"`, 1)
	event := func(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }
	return map[string]cannedResponse{
		"object": {200, jsonType, gadget},
		"list": {200, jsonType + "; charset=utf-8",
			`{"apiVersion":"example.com/v1","kind":"GadgetList","metadata":{"resourceVersion":"9"},"items":[` + gadget + "," + gadget + `]}`},
		"large list": {200, jsonType,
			`{"apiVersion":"example.com/v1","kind":"GadgetList","metadata":{"resourceVersion":"9"},"items":[` + large + `]}`},
		"events": {200, jsonType, event("ADDED", gadget) + event("MODIFIED", gadget) +
			event("DELETED", gadget)},
		"large events":     {200, jsonType, event("ADDED", large) + event("ADDED", gadget)},
		"truncated stream": {200, jsonType, event("ADDED", gadget) + event("ADDED", gadget)[:50]},
		"expired":          {410, jsonType, expired},
		"bad gateway":      {502, "text/html", "<html>bad gateway</html>"},
		"nothing":          {200, jsonType, ""},
	}
}

func (a cannedResponse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.contentType)
	out := io.Writer(w)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		zipped := gzip.NewWriter(w)
		defer zipped.Close()
		out = zipped
	}
	w.WriteHeader(a.code)
	fmt.Fprint(out, a.body)
}

// requestAll sends every kind of request and returns all results.
func requestAll(t *testing.T, client dynamic.Interface) []any {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	resource := client.Resource(gadgets).Namespace("default")
	var results []any
	record := func(object any, err error) { results = append(results, object, fmt.Sprint(err)) }
	object, err := resource.Get(ctx, "g", metav1.GetOptions{})
	record(object, err)
	list, err := resource.List(ctx, metav1.ListOptions{})
	record(list, err)
	object, err = resource.Update(ctx,
		&unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"name": "g"}}}, metav1.UpdateOptions{})
	record(object, err)
	w, err := resource.Watch(ctx, metav1.ListOptions{})
	record(nil, err)
	if err == nil {
		defer w.Stop()
		for event := range w.ResultChan() {
			// The texts of syntax errors differ, but both results are errors.
			if status, ok := event.Object.(*metav1.Status); ok &&
				status.Reason == metav1.StatusReasonInternalError {
				status.Message, status.Details = "", nil
			}
			results = append(results, event)
		}
	}
	return results
}

func TestClientEqualsClientGo(t *testing.T) {
	for name, answer := range cannedResponses() {
		for _, compressed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/gzip=%v", name, compressed), func(t *testing.T) {
				server := httptest.NewServer(answer)
				defer server.Close()
				config := &rest.Config{Host: server.URL, QPS: -1, DisableCompression: !compressed}
				stock, err := dynamic.NewForConfig(config)
				if err != nil {
					t.Fatal(err)
				}
				ours, err := dynamicinformer.NewClient(config, nil)
				if err != nil {
					t.Fatal(err)
				}
				want, got := requestAll(t, stock), requestAll(t, ours)
				if !reflect.DeepEqual(want, got) { // for large objects, cmp takes seconds
					t.Errorf("(-stock +ours)\n%.3000s", cmp.Diff(want, got))
				}
			})
		}
	}
}

func TestNewClientErrors(t *testing.T) {
	tests := map[string]*rest.Config{
		"no config": nil,
		"bad host":  {Host: "http://a b"},
		"bad TLS": {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{Insecure: true,
			CAData: []byte("x")}},
	}
	for name, config := range tests {
		if _, err := dynamicinformer.NewClient(config, nil); err == nil {
			t.Errorf("%s: NewClient() succeeded, want an error", name)
		}
	}
}

// TestNewClientLeavesTheConfig checks that NewClient does not change the caller's config, and uses the HTTP
// client.
func TestNewClientLeavesTheConfig(t *testing.T) {
	server := httptest.NewServer(cannedResponses()["object"])
	defer server.Close()
	config := &rest.Config{Host: server.URL, APIPath: "/mine"}
	used := 0
	httpClient := &http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		used++
		return http.DefaultTransport.RoundTrip(r)
	})}
	client, err := dynamicinformer.NewClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(gadgets).Get(context.Background(), "g", metav1.GetOptions{}); err != nil ||
		used != 1 {
		t.Errorf("the HTTP client was used %d times with the error %v, want once", used, err)
	}
	if config.APIPath != "/mine" || config.NegotiatedSerializer != nil || config.UserAgent != "" {
		t.Errorf("NewClient changed the config: %v", config)
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
