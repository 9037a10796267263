package apitest

import (
	"bytes"
	"cmp"
	"context"
	"net/http"

	"github.com/crdcache/crdcache/readapi/testcluster"
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

func (f Fault) fault() testcluster.Fault {
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

// Close responds with 200 and ends the response, without an error, after the first line that contains the
// text. Without a text it ends immediately. For a watch, a line is an event, and the end closes the watch.
func Close(after string) testcluster.Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if after == "" {
			w.WriteHeader(http.StatusOK)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		next.ServeHTTP(&closingWriter{ResponseWriter: w, after: []byte(after), end: cancel},
			r.WithContext(ctx))
	}
}

// closingWriter ends a request after a line of its response.
type closingWriter struct {
	http.ResponseWriter
	after    []byte
	end      func()
	buffered []byte // an incomplete line
	ended    bool
}

// Unwrap is for http.ResponseController.
func (c *closingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *closingWriter) Write(data []byte) (int, error) {
	c.buffered = append(c.buffered, data...)
	for !c.ended {
		end := bytes.IndexByte(c.buffered, '\n')
		if end < 0 {
			break
		}
		line := c.buffered[:end+1]
		c.buffered = c.buffered[end+1:]
		if _, err := c.ResponseWriter.Write(line); err != nil {
			return 0, err
		}
		if c.ended = bytes.Contains(line, c.after); c.ended {
			c.end()
		}
	}
	return len(data), nil
}

// AddFaults adds faults; the last one that matches a request applies.
func (s *Server) AddFaults(broken ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range broken {
		s.mu.repairs[f.Path] = append(s.mu.repairs[f.Path], s.cluster().Faults().Add(f.fault()))
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
