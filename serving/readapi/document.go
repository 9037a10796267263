package readapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"
)

// document is an encoded answer that changes only with the types.
type document struct {
	mediaType string
	data      []byte
	etag      string
}

// documentBuilder returns the content of a document, or nil if it does not exist.
type documentBuilder func(types []Type) any

// builderForPath returns the builder of a path without trailing slash, or nil if it is not the path of a
// document.
func (h *handler) builderForPath(path string, r *http.Request, aggregated bool) documentBuilder {
	parts := strings.Split(path, "/")
	switch {
	case path == "/openapi/v3":
		return h.options.openAPIIndex
	case strings.HasPrefix(path, "/openapi/v3/"):
		name := strings.TrimPrefix(path, "/openapi/v3/")
		return func(types []Type) any { return h.options.openAPIOf(types, name) }
	case isDiscoveryRoot(path) && aggregated:
		return func(types []Type) any { return aggregatedDiscovery(types, path == "/api") }
	case isDiscoveryRoot(path):
		return func(types []Type) any { return legacyRoot(types, path == "/api", r.Host) }
	case len(parts) == 3 && parts[1] == "api":
		return func(types []Type) any { return legacyResources(types, "", parts[2]) }
	case len(parts) == 3 && parts[1] == "apis":
		return func(types []Type) any { return legacyGroup(types, parts[2]) }
	case len(parts) == 4 && parts[1] == "apis":
		return func(types []Type) any { return legacyResources(types, parts[2], parts[3]) }
	}
	return nil
}

func isDiscoveryRoot(path string) bool { return path == "/api" || path == "/apis" }

// serveDocument serves discovery and OpenAPI. It returns false for other paths.
func (h *handler) serveDocument(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	aggregated := isDiscoveryRoot(path) && wantsAggregated(r.Header)
	build := h.builderForPath(path, r, aggregated)
	if build == nil {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		WriteError(w, r, errMethodNotAllowed())
		return true
	}
	media, notAcceptableErr := negotiateMediaType(r.Header)
	switch {
	case aggregated:
		media, notAcceptableErr = aggregatedMedia, nil
	case strings.HasPrefix(path, "/openapi/"):
		media, notAcceptableErr = mediaJSON, nil // the only supported form
	}
	d, err := h.document(path, media, build)
	switch {
	case err != nil:
		WriteError(w, r, err)
	case d.data == nil && strings.HasPrefix(path, "/api/"):
		WriteError(w, r, errNoSuchResource())
	case d.data == nil:
		notFound(w)
	case notAcceptableErr != nil:
		WriteError(w, r, notAcceptableErr)
	default:
		d.serve(w, r)
	}
	return true
}

// aggregatedMedia is the supported form of aggregated discovery.
const aggregatedMedia = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func wantsAggregated(header http.Header) bool {
	for _, a := range parseAccept(header) {
		switch kind, version, group := a.conversion(); {
		case !a.converts():
			return false
		case kind == "APIGroupDiscoveryList" && version == "v2" && group == "apidiscovery.k8s.io":
			return true
		}
	}
	return false
}

// document returns a document for the current types. The data is nil if the document does not exist.
func (h *handler) document(path, media string, build documentBuilder) (document, error) {
	types, generation := h.backend.ServedTypes()
	key := media + " " + path
	// /api contains the host of the request and is not cached
	containsHost := path == "/api" && media != aggregatedMedia

	h.documents.Lock()
	defer h.documents.Unlock()
	if h.documents.generation != generation || h.documents.byPath == nil {
		h.documents.generation, h.documents.byPath = generation, map[string]document{}
	}
	if d, ok := h.documents.byPath[key]; ok && !containsHost {
		return d, nil
	}
	if _, writable := h.backend.(Writer); writable {
		for i := range types { // a copy
			types[i].writable = true
		}
	}
	content := build(types)
	if content == nil {
		return document{}, nil // not cached: clients can request any path
	}
	data, err := json.Marshal(content)
	if err != nil {
		return document{}, err
	}
	if media == mediaYAML {
		data, err = yaml.JSONToYAML(data)
	} else {
		data = append(data, '\n')
	}
	if err != nil {
		return document{}, err
	}
	d := document{mediaType: media, data: data, etag: fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(data)))}
	if !containsHost {
		h.documents.byPath[key] = d
	}
	return d, nil
}

// serve sends the document, or 304 if the client already has it.
func (d document) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", d.etag)
	w.Header().Set("Vary", "Accept")
	if d.mediaType == aggregatedMedia {
		w.Header().Set("Cache-Control", "public")
	}
	if r.Header.Get("If-None-Match") == d.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", d.mediaType)
	_, _ = w.Write(d.data) // the only error is that the client has disconnected
}
