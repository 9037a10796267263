package requests

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/packed"
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
	must(t, err)
	for name, config := range map[string]*rest.Config{"client": config, "connection": connection.Config()} {
		client, err := NewClient(config, nil)
		must(t, err)
		addresses := map[string]bool{}
		for range 2 * size {
			pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
			stream, err := pods.Watch(t.Context(), metav1.ListOptions{})
			must(t, err)
			defer stream.Stop()
			addresses[<-arrived] = true
		}
		if len(addresses) < size {
			t.Errorf("%s: the watches use %d connections, want at least %d", name, len(addresses), size)
		}
	}
}

// TestDropManagedFields verifies that lists request objects without managedFields if the config does, and
// keep the managedFields that a server sends anyway.
func TestDropManagedFields(t *testing.T) {
	accepts := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepts <- r.Header.Get("Accept")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"example.com/v1","kind":"GadgetList","items":[`+
			`{"metadata":{"name":"a","managedFields":[{"manager":"m"}]}}]}`)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: -1}
	field := reflect.ValueOf(config).Elem().FieldByName("DropManagedFields")
	if !field.IsValid() {
		t.Skip("needs client-go 0.38")
	}
	field.SetBool(true)
	featurestesting.SetFeatureDuringTest(t, "ManagedFieldsOptOutClient", true)
	client, err := NewClient(config, nil)
	must(t, err)
	r := newResource(client, gadgets, "", packedObjects, nil)
	list, err := r.List(t.Context(), metav1.ListOptions{}, true)
	must(t, err)
	if accept := <-accepts; !strings.Contains(accept, "drop=metadata.managedFields") {
		t.Errorf("the request accepts %q, want objects without managedFields", accept)
	}
	if objects := list.(*packed.List).Items; len(objects) != 1 || len(objects[0].GetManagedFields()) != 1 {
		t.Errorf("the list is %v, want an object with managedFields", objects)
	}
}
