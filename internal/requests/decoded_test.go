package requests

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

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

// compareWithClientGo compares the result of decodeList, if it decodes the list, with client-go's result.
func compareWithClientGo(t *testing.T, body string) {
	t.Helper()
	got, want := &unstructured.UnstructuredList{}, &unstructured.UnstructuredList{}
	if !decodeList([]byte(body), got) {
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
			if err != nil {
				t.Fatal(err)
			}
			own, err := NewClient(config, nil)
			if err != nil {
				t.Fatal(err)
			}
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
