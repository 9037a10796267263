package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/informer/conformance"
)

// Server is a running API server. It is safe for concurrent use.
type Server struct {
	*httptest.Server
	types   []Type
	objects *conformance.APIServer
	// http reaches a server in memory; nil otherwise.
	http *http.Client

	mu struct {
		sync.Mutex
		faults   []Fault
		requests []string
		arrived  chan struct{} // closed and replaced with every request
	}
}

// Fault is what becomes of some requests.
type Fault struct {
	// Path is the path of the requests.
	Path string
	// Verb is get, list, watch or watch-list; empty means all of them.
	Verb string
	// Status is what they are answered with; 0 means that no answer comes. After 200 nothing follows.
	Status int
	// Message is part of the answer.
	Message string
	// RetryAfter is the header of that name.
	RetryAfter string
}

// New returns a server of these types that ends with the test.
func New(t testing.TB, types ...Type) *Server {
	t.Helper()
	s := newServer(types)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.end)
	return s
}

func newServer(types []Type) *Server {
	s := &Server{types: types, objects: conformance.NewAPIServer()}
	s.mu.arrived = make(chan struct{})
	return s
}

func (s *Server) end() {
	s.CloseClientConnections() // watches last as long as their clients
	s.Close()
}

// Config returns the config of a client without a limit on its rate.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.URL, QPS: -1} }

// Client returns a client of the server.
func (s *Server) Client(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfigAndClient(s.Config(), s.HTTPClient(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// HTTPClient returns an HTTP client that reaches the server.
func (s *Server) HTTPClient(t testing.TB) *http.Client {
	t.Helper()
	if s.http != nil {
		return s.http
	}
	client, err := rest.HTTPClientFor(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Create stores objects.
func (s *Server) Create(t testing.TB, gvr schema.GroupVersionResource, objects ...*unstructured.Unstructured) {
	t.Helper()
	client := s.Client(t).Resource(gvr)
	for _, obj := range objects {
		var resource dynamic.ResourceInterface = client
		if obj.GetNamespace() != "" {
			resource = client.Namespace(obj.GetNamespace())
		}
		if _, err := resource.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Break adds faults; the last one that fits a request counts.
func (s *Server) Break(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults = append(s.mu.faults, faults...)
}

// Repair removes all faults.
func (s *Server) Repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults = nil
}

// RepairPath removes the faults of a path.
func (s *Server) RepairPath(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults = slices.DeleteFunc(s.mu.faults, func(f Fault) bool { return f.Path == path })
}

// Compact forgets the history of the objects: a watch from before now gets 410.
func (s *Server) Compact() { s.objects.Compact() }

// Requests returns the requests so far, each as "verb path?query".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.requests)
}

// AwaitRequest waits until a request for this path has come, with any of the verbs, or whatever verb without.
func (s *Server) AwaitRequest(t testing.TB, path string, verbs ...string) {
	t.Helper()
	for {
		s.mu.Lock()
		requests, arrived := s.mu.requests, s.mu.arrived
		s.mu.Unlock()
		for _, r := range requests {
			verb, uri, _ := strings.Cut(r, " ")
			if (uri == path || strings.HasPrefix(uri, path+"?")) && (len(verbs) == 0 || slices.Contains(verbs, verb)) {
				return
			}
		}
		select {
		case <-arrived:
		case <-t.Context().Done():
			t.Fatalf("no request for %s came", path)
		}
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch fault, ok := s.admit(r); {
	case ok && fault.Status == 0:
		<-r.Context().Done()
	case ok && fault.Status == http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case ok:
		fault.answer(w, r)
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		serveDiscovery(w, r, s.types)
	default:
		s.serveObjects(w, r)
	}
}

// admit notes a request and looks for the fault that fits it.
func (s *Server) admit(r *http.Request) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := s.verb(r)
	s.mu.requests = append(s.mu.requests, verb+" "+r.URL.RequestURI())
	close(s.mu.arrived)
	s.mu.arrived = make(chan struct{})
	for _, f := range slices.Backward(s.mu.faults) {
		if f.Path == r.URL.Path && (f.Verb == "" || f.Verb == verb) {
			return f, true
		}
	}
	return Fault{}, false
}

func (s *Server) verb(r *http.Request) string {
	query := r.URL.Query()
	collection := slices.ContainsFunc(s.types, func(t Type) bool {
		return strings.HasSuffix(r.URL.Path, "/"+t.GVR.Resource)
	})
	switch {
	case r.Method != http.MethodGet:
		return strings.ToLower(r.Method)
	case query.Get("sendInitialEvents") == "true":
		return "watch-list"
	case query.Get("watch") != "":
		return "watch"
	case collection:
		return "list"
	}
	return "get"
}

func (f Fault) answer(w http.ResponseWriter, r *http.Request) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	message := f.Message
	if message == "" {
		message = fmt.Sprintf("%s is out of order", r.URL.Path)
	}
	status := apierrors.NewGenericServerResponse(f.Status, r.Method, schema.GroupResource{}, "", message, 0, false).Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Message = message
	writeJSON(w, "application/json", f.Status, status)
}

func writeJSON(w http.ResponseWriter, contentType string, code int, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client has gone: nobody is left to tell
}
