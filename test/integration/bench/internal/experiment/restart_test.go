package experiment

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
)

func startCertificateServer(t *testing.T, count int) (kubeconfig string) {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{Stamp: true})
	err := storage.SetType(readapi.Type{
		Group: certificates.Group, Names: crd.Names{Plural: certificates.Resource,
			Kind: certificateKind}, Namespaced: true,
		Versions: []readapi.Version{{Name: certificates.Version}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range count {
		object := fmt.Sprintf(`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"c%d","namespace":"a"}}`, n)
		if _, err := storage.ApplyJSON([]byte(object)); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(readapi.NewHandler(storage, readapi.HandlerOptions{}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"` + server.URL +
		`"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestRestart starts without persisted objects, saves them, and restarts from them. The second start must
// need fewer bytes from the server.
func TestRestart(t *testing.T) {
	task := Task{Experiment: Restart, Size: Small, Objects: 100, Kubeconfig: startCertificateServer(t, 100)}
	receivedBytes := map[string]float64{}
	runRestart := func(name string) {
		t.Helper()
		task.Subject = name
		outcome, err := Run(t.Context(), task, nil)
		if err != nil {
			t.Fatalf("Run of %s: %v", name, err)
		}
		if m := outcome.Metrics; m[Readable] <= 0 || m[Readable] > m[Wall] {
			t.Errorf("%s: readable after %v s, want at most the time of the sync, %v s", name, m[Readable],
				m[Wall])
		}
		receivedBytes[name] = outcome.Metrics[Received]
	}
	runRestart(Packed)
	task.Folder = t.TempDir()
	runRestart("the earlier process")
	task.Resumes = true
	runRestart(Unchanged)
	if receivedBytes[Unchanged] == 0 || 2*receivedBytes[Unchanged] > receivedBytes[Packed] {
		t.Errorf("bytes read from the server: %v, want less than half with persisted objects", receivedBytes)
	}
	task.Folder = t.TempDir()
	if _, err := Run(t.Context(), task, nil); err == nil {
		t.Error("want an error for a cache without persisted objects")
	}
}

func TestQueriesAreMeasured(t *testing.T) {
	for _, objects := range []int{1000, 3000} {
		outcome, err := measureQueries(t.Context(), Task{Objects: objects, Subject: Crdcache,
			Budget: time.Millisecond}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range []string{QueryFew, QuerySorted, QueryKeys, QuerySortedKeys, QueryDangling} {
			if outcome.Metrics[metric] <= 0 {
				t.Errorf("the outcome has no metric %s", metric)
			}
		}
	}
}

// TestSubjectsAreCreatedWithoutRequests creates every subject without requests.
func TestSubjectsAreCreatedWithoutRequests(t *testing.T) {
	for _, s := range Subjects() {
		c, err := s.New(Options{
			Config: &rest.Config{Host: "https://localhost:1", QPS: -1},
			GVR:    schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
			Kind:   "Widget",
		})
		if err != nil {
			t.Errorf("New of %s: %v", s.Name, err)
			continue
		}
		if _, ok := c.(Reader); ok != (s.Name != Stream) {
			t.Errorf("%s implements Reader: %v", s.Name, ok)
		}
	}
}
