package print

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// tableJSON returns a Table of objects as a server sends it.
func tableJSON(columns string, rows ...string) string {
	return fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":%s,"rows":[%s]}`,
		columns, strings.Join(rows, ","))
}

func rowJSON(name, cells string) string {
	return fmt.Sprintf(`{"cells":%s,"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"resourceVersion":"5"}}}`, cells, name)
}

const columnsJSON = `[{"name":"Name","type":"string"},{"name":"Restarts","type":"integer"}]`

// newTableClient returns a client of a server with these answers to lists and watches, and the received
// requests.
func newTableClient(t *testing.T, list, events string) (*TableClient, *[]*http.Request) {
	t.Helper()
	var requests []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("watch") {
			fmt.Fprint(w, events)
			return
		}
		fmt.Fprint(w, list)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := NewTableClient(config, server.Client(), client)
	if err != nil {
		t.Fatal(err)
	}
	return printed, &requests
}

// TestPrintedList verifies that objects are returned with their rows in the server's order.
func TestPrintedList(t *testing.T) {
	printed, requests := newTableClient(t, tableJSON(columnsJSON, rowJSON("z", `["z",3]`), rowJSON("a",
		`["a\u0007",null]`)), "")
	list, err := printed.Resource(pods).Namespace("web").List(t.Context(),
		metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil {
		t.Fatal(err)
	}
	if request := (*requests)[0]; request.URL.Path != "/api/v1/namespaces/web/pods" ||
		request.URL.RawQuery != "includeObject=Object&labelSelector=a%3Db" ||
		!strings.Contains(request.Header.Get("Accept"), "as=Table") {
		t.Errorf("the client requested %s as %s, want a table of the pods in web", request.URL,
			request.Header.Get("Accept"))
	}
	if list.GetResourceVersion() != "7" || len(list.Items) != 2 || list.Items[0].GetName() != "z" ||
		RowIndex(&list.Items[0]) >= RowIndex(&list.Items[1]) {
		t.Errorf("List = %v, want two objects in the order of the rows, z first, at version 7", list)
	}
	rows := printed.Rows(pods)
	if definitions := rows.Definitions(); len(definitions) != 2 || definitions[1].Name != "Restarts" {
		t.Errorf("Definitions = %v, want two columns, the second Restarts", definitions)
	}
	want := [][]any{{"z", int64(3)}, {"a\uFFFD", nil}}
	if diff := cmp.Diff(want, [][]any{rows.Cells(&list.Items[0]), rows.Cells(&list.Items[1])}); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if _, err := json.Marshal(list.Items[0].DeepCopy().Object); err != nil {
		t.Errorf("encoding an object with its row: %v", err)
	}
}

// TestPrintedWatch verifies that the row of each event's object, bookmarks and errors are returned.
func TestPrintedWatch(t *testing.T) {
	event := func(kind, object string) string {
		return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n",
			kind, object)
	}
	printed, _ := newTableClient(t, "", event("ADDED", tableJSON(columnsJSON, rowJSON("a", `["a",0]`)))+
		event("DELETED", tableJSON("null", rowJSON("a", `["a",1]`)))+
		event("BOOKMARK", tableJSON("null", rowJSON("", `["",0]`)))+
		event("BOOKMARK", `{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"9"}}`)+
		event("ERROR", `{"apiVersion":"v1","kind":"Status","code":410,"reason":"Expired"}`))
	w, err := printed.Resource(pods).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var got []string
	for e := range w.ResultChan() {
		switch object := e.Object.(type) {
		case *unstructured.Unstructured:
			got = append(got, fmt.Sprint(e.Type, " ", object.GetResourceVersion(), " ", rowCells(object)))
		case *metav1.Status:
			got = append(got, fmt.Sprint(e.Type, " ", object.Code))
		}
		if e.Type == watch.Error {
			break
		}
	}
	want := []string{"ADDED 5 [a 0]", "DELETED 5 [a 1]", "BOOKMARK 5 [ 0]", "BOOKMARK 9 []", "ERROR 410"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
