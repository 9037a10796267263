package apitest

import (
	"bytes"
	"net/http"
	"strings"
)

// serveObjects serves the objects of a request, in the version that it asks for.
func (s *Server) serveObjects(w http.ResponseWriter, r *http.Request) {
	for _, t := range s.types {
		asked := "/apis/" + t.GVR.GroupVersion().String() + "/"
		if t.Stored == "" || !strings.HasPrefix(r.URL.Path, asked) || !strings.Contains(r.URL.Path, "/"+t.GVR.Resource) {
			continue
		}
		stored := t.GVR.GroupVersion()
		stored.Version = t.Stored
		r = r.Clone(r.Context())
		r.URL.Path = "/apis/" + stored.String() + "/" + strings.TrimPrefix(r.URL.Path, asked)
		w = &converter{
			ResponseWriter: w,
			from:           []byte(`"apiVersion":"` + stored.String() + `"`),
			to:             []byte(`"apiVersion":"` + t.GVR.GroupVersion().String() + `"`),
		}
		break
	}
	s.objects.ServeHTTP(w, r)
}

// converter rewrites the apiVersion of each document that is written, whole, with one call of Write.
type converter struct {
	http.ResponseWriter
	from, to []byte
}

// Write implements http.ResponseWriter.
func (c *converter) Write(document []byte) (int, error) {
	if _, err := c.ResponseWriter.Write(bytes.ReplaceAll(document, c.from, c.to)); err != nil {
		return 0, err
	}
	return len(document), nil
}

// Flush implements http.Flusher.
func (c *converter) Flush() { c.ResponseWriter.(http.Flusher).Flush() }
