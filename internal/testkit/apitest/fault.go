package apitest

import (
	"cmp"
	"net/http"

	"github.com/crdcache/crdcache/readapi/faults"
)

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

func (f Fault) fault() faults.Fault {
	match := faults.Match{Path: f.Path}
	if f.Verb != "" {
		match.Verbs = []string{f.Verb}
	}
	return faults.Fault{Match: match, Effect: f.effect()}
}

func (f Fault) effect() faults.Effect {
	switch f.Status {
	case 0:
		return faults.Hang()
	case http.StatusOK:
		return faults.Stall(0, 0)
	}
	effect := faults.Status(f.Status, "", cmp.Or(f.Message, f.Path+" is out of order"))
	if f.RetryAfter != "" {
		effect = faults.Header("Retry-After", f.RetryAfter, effect)
	}
	return effect
}

// Break adds faults; the last one that fits a request counts.
func (s *Server) Break(broken ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range broken {
		s.mu.repairs[f.Path] = append(s.mu.repairs[f.Path], s.faults.Add(f.fault()))
	}
}

// Repair removes all faults.
func (s *Server) Repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.Clear()
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
