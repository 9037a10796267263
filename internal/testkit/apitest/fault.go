package apitest

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/crdcache/crdcache/test/testcluster"
)

// Fault is a fault of some requests.
type Fault struct {
	// Path is the path of the requests.
	Path string
	// Verb is get, list, watch or watch-list; empty means all.
	Verb string
	// Status is the status of the response; 0 means no response. A response with 200 is empty.
	Status int
	// Message is part of the response.
	Message string
	// RetryAfter is the header of that name.
	RetryAfter string
	// Effect replaces the response with Status.
	Effect testcluster.Effect
}

func (f Fault) clusterFault() testcluster.Fault {
	match := testcluster.Match{Path: f.Path}
	if f.Verb != "" {
		match.Verbs = []string{f.Verb}
	}
	return testcluster.Fault{Match: match, Effect: f.effect()}
}

func (f Fault) effect() testcluster.Effect {
	if f.Effect != nil {
		return f.Effect
	}
	switch f.Status {
	case 0:
		return testcluster.Hang()
	case http.StatusOK:
		return testcluster.Stall(0, 0)
	}
	effect := testcluster.Status(f.Status, "", cmp.Or(f.Message, f.Path+" is out of order"))
	if f.RetryAfter != "" {
		effect = testcluster.Header("Retry-After", f.RetryAfter, effect)
	}
	return effect
}

// AddFaults adds faults; the last one that matches a request applies.
func (s *Server) AddFaults(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.mu.repairs[f.Path] = append(s.mu.repairs[f.Path], s.cluster().Faults().Add(f.clusterFault()))
	}
}

// Repair removes all faults.
func (s *Server) Repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster().Faults().Clear()
	clear(s.mu.repairs)
}

// RepairPath removes the faults of a path.
func (s *Server) RepairPath(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, repair := range s.mu.repairs[path] {
		repair()
	}
	delete(s.mu.repairs, path)
}

// WithoutCoreWatches is a server whose types of the core group can be listed but not watched, also by its
// discovery.
func WithoutCoreWatches(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api" && !strings.HasPrefix(r.URL.Path, "/api/"):
			server.ServeHTTP(w, r)
		case r.URL.Query().Get("watch") != "":
			http.Error(w, "watches are not supported", http.StatusMethodNotAllowed)
		default:
			recorder := httptest.NewRecorder()
			r.Header.Del("Accept-Encoding")
			server.ServeHTTP(recorder, r)
			maps.Copy(w.Header(), recorder.Header())
			w.WriteHeader(recorder.Code)
			_, _ = io.WriteString(w, strings.ReplaceAll(recorder.Body.String(), `,"watch"`, ""))
		}
	})
}
