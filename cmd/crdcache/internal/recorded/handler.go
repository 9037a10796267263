// Package recorded serves a snapshot as the API server did that it was saved from: types, tables and discovery included.
// What the server refused when it was saved is refused with the same words; types that were not saved are forbidden, so that
// nobody takes them for types without objects.
package recorded

import (
	"net/http"
	"strings"

	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/snapshot"
)

// NewHandler returns a handler that serves a file.
func NewHandler(file *snapshot.File) http.Handler {
	served := readapi.NewBackendHandler(newBackend(file), readapi.HandlerOptions{WriteTimeout: -1})
	server := file.Contents().Server
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		switch document := server.Documents[path]; {
		case path == "/version" && len(server.Version) > 0:
			write(w, "application/json", server.Version)
		case len(document) > 0 && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList"):
			write(w, aggregatedMedia, document)
		default:
			served.ServeHTTP(w, r)
		}
	})
}

// aggregatedMedia is the type of discovery documents as they are recorded.
const aggregatedMedia = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func write(w http.ResponseWriter, media string, text []byte) {
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(text) // the client has gone: nobody is left to tell
}
