package requests

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestConnectionPool checks that watches use as many connections as rest.Config.MinConnectionPoolSize says.
// client-go has the field since 0.38.
func TestConnectionPool(t *testing.T) {
	const size = 3
	arrived := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") { // a connection identifies its cluster
			http.NotFound(w, r)
			return
		}
		arrived <- r.RemoteAddr
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
	field := reflect.ValueOf(config).Elem().FieldByName("MinConnectionPoolSize")
	if !field.IsValid() {
		t.Skip("needs client-go 0.38")
	}
	field.SetInt(size)
	connection, err := NewConnection(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*rest.Config{"client": config, "connection": connection.Config()} {
		client, err := NewClient(config, nil)
		if err != nil {
			t.Fatal(err)
		}
		addresses := map[string]bool{}
		for range 2 * size {
			pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
			stream, err := pods.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Stop()
			addresses[<-arrived] = true
		}
		if len(addresses) < size {
			t.Errorf("%s: the watches use %d connections, want at least %d", name, len(addresses), size)
		}
	}
}
