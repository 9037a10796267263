package dynamicinformer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// servePages responds to lists with one object per page, and to watches without events.
func servePages(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusBadRequest) // as servers without watch-lists do
		fmt.Fprint(
			w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`)
	case query.Has("watch"):
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		page, next := query.Get("continue"), ""
		switch page {
		case "":
			page, next = "first", `"continue":"second",`
		case "second":
			next = `"continue":"third",`
		}
		fmt.Fprintf(
			w, `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{%s"resourceVersion":"7"},"items":[`+
				`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":"web","resourceVersion":"5"}}]}`, next, page)
	}
}

// TestListsInPages verifies that servers without a watch cache answer in pages.
func TestListsInPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(servePages))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	for _, mode := range []StorageMode{StoragePacked, StorageObject, StorageMetadata} {
		t.Run(mode.String(), func(t *testing.T) {
			i := started(t, Options{Config: &rest.Config{Host: server.URL, QPS: -1}},
				ResourceOptions{Storage: Storage{Mode: mode}})
			keys := i.GetStore().ListKeys()
			slices.Sort(keys)
			if diff := cmp.Diff([]string{"web/first", "web/second", "web/third"}, keys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if got := i.LastSyncResourceVersion(); got != "7" {
				t.Errorf("LastSyncResourceVersion() = %q, want 7", got)
			}
		})
	}
}

// TestPageSizeAndWatchTimeout verifies that requests have the page size and timeout of the options, also for
// several namespaces.
func TestPageSizeAndWatchTimeout(t *testing.T) {
	for name, namespaces := range map[string]Namespaces{"all": AllNamespaces(),
		"some": InNamespaces("web", "db")} {
		lists, watches := make(chan string, 100), make(chan int, 100)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			switch {
			case query.Has("sendInitialEvents"):
			case query.Has("watch"):
				seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
				watches <- seconds
			default:
				lists <- query.Get("limit")
			}
			servePages(w, r)
		}))
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		started(t, Options{Config: &rest.Config{Host: server.URL, QPS: -1}},
			ResourceOptions{Namespaces: namespaces, PageSize: 17, MinWatchTimeout: time.Hour})
		if limit := <-lists; limit != "17" {
			t.Errorf("%s: the limit of a list = %q, want 17", name, limit)
		}
		if seconds := <-watches; seconds < 3600 || seconds > 7200 {
			t.Errorf("%s: the timeout of a watch = %d seconds, want 3600 to 7200", name, seconds)
		}
	}
}
