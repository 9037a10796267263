package run

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// server lists objects and accepts patches.
type server struct {
	objects int
	refuse  string // a path that gets an error

	mu struct {
		sync.Mutex
		patches map[string]string
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		items := make([]string, s.objects)
		for i := range items {
			items[i] = fmt.Sprintf(`{"metadata":{"namespace":"ns","name":"object-%d"}}`, i)
		}
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"List","items":[%s]}`, strings.Join(items, ","))
		return
	}
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == s.refuse {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.patches == nil {
		s.mu.patches = map[string]string{}
	}
	s.mu.patches[r.URL.Path] = string(body)
}

func client(t *testing.T, s *server) *rest.RESTClient {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	config := dynamic.ConfigFor(&rest.Config{Host: listening.URL, QPS: -1})
	config.GroupVersion = nil
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUpdate(t *testing.T) {
	for name, rate := range map[string]float64{"steadily": 1000, "at once": 0} {
		t.Run(name, func(t *testing.T) { testUpdate(t, rate) })
	}
}

func testUpdate(t *testing.T, rate float64) {
	s := &server{objects: 5}
	start := time.Now()
	sent, err := updateObjects(t.Context(), client(t, s), 4, rate)
	if err != nil {
		t.Fatal(err)
	}
	if len(sent) != 4 {
		t.Errorf("%d updates were sent, want 4: %v", len(sent), sent)
	}
	for n := range 4 {
		key := fmt.Sprintf("ns/object-%d", n)
		if at := sent[key]; at.Before(start) || at.After(time.Now()) {
			t.Errorf("%s was sent at %v, want a time since %v", key, at, start)
		}
		path := fmt.Sprintf("/apis/cert-manager.io/v1/namespaces/ns/certificates/object-%d", n)
		want := `{"metadata":{"annotations":`
		if n%2 == 0 {
			path, want = path+"/status", `{"status":`
		}
		if body := s.mu.patches[path]; !strings.HasPrefix(body, want) {
			t.Errorf("%s got %q, want it to begin with %s", path, body, want)
		}
	}
}

func TestUpdateFailures(t *testing.T) {
	if _, err := updateObjects(t.Context(), client(t, &server{objects: 1}), 2, 1000); err == nil {
		t.Error("there is no error with too few objects")
	}
	s := &server{objects: 2, refuse: "/apis/cert-manager.io/v1/namespaces/ns/certificates/object-1"}
	if _, err := updateObjects(t.Context(), client(t, s), 2, 1000); err == nil ||
		!strings.Contains(err.Error(), "ns/object-1") {
		t.Errorf("the error is %v, want it to name the object", err)
	}
}

func TestLatencies(t *testing.T) {
	at := time.Unix(100, 0)
	sent := map[string]time.Time{"a/b": at, "a/c": at.Add(time.Second)}
	seen := map[string]time.Time{"a/b": at.Add(5 * time.Millisecond), "a/c": at.Add(1005 * time.Millisecond),
		"a/d": at}
	latencies, err := latenciesOf(sent, seen)
	if err != nil || len(latencies) != 2 || latencies[0] != 5*time.Millisecond ||
		latencies[1] != 5*time.Millisecond {
		t.Errorf("got %v, %v, want 5ms twice", latencies, err)
	}
	delete(seen, "a/b")
	if _, err := latenciesOf(sent, seen); err == nil || !strings.Contains(err.Error(), "a/b") {
		t.Errorf("the error is %v, want it to name what was not seen", err)
	}
}
