package readapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"
)

// document is an answer that only changes when the types do.
type document struct {
	media string
	data  []byte
	etag  string
}

// builder makes the content of a document; nil says that there is none.
type builder func(types []Type) any

// builderOf returns what makes the document of a path without a slash at its end, or nil for other paths.
func builderOf(path string, r *http.Request, aggregated bool) builder {
	parts := strings.Split(path, "/")
	switch {
	case path == "/openapi/v3":
		return func(types []Type) any { return openAPIIndex(types) }
	case strings.HasPrefix(path, "/openapi/v3/"):
		return func(types []Type) any { return openAPIOf(types, strings.TrimPrefix(path, "/openapi/v3/")) }
	case isRoot(path) && aggregated:
		return func(types []Type) any { return aggregate(types, path == "/api") }
	case isRoot(path):
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

// isRoot reports whether discovery begins with the path.
func isRoot(path string) bool { return path == "/api" || path == "/apis" }

// serveDocument serves discovery and OpenAPI, and reports whether the path is one of those.
func (h *handler) serveDocument(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	aggregated := isRoot(path) && wantsAggregated(r.Header)
	build := builderOf(path, r, aggregated)
	if build == nil {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		writeError(w, r, errMethodNotAllowed())
		return true
	}
	media, unacceptable := negotiatePlain(r.Header)
	switch {
	case aggregated:
		media, unacceptable = aggregatedMedia, nil
	case strings.HasPrefix(path, "/openapi/"):
		media, unacceptable = mediaJSON, nil // whatever is asked for, there is nothing else
	}
	d, err := h.document(path, media, build)
	switch {
	case err != nil:
		writeError(w, r, err)
	case d.data == nil && strings.HasPrefix(path, "/api/"):
		writeError(w, r, errNoSuchResource())
	case d.data == nil:
		notFound(w)
	case unacceptable != nil:
		writeError(w, r, unacceptable)
	default:
		d.serve(w, r)
	}
	return true
}

// aggregatedMedia is the form of aggregated discovery that is served.
const aggregatedMedia = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether that is the preferred form.
func wantsAggregated(header http.Header) bool {
	for _, a := range parseAccept(header) {
		switch kind, version, group := a.as(); {
		case !a.converts():
			return false
		case kind == "APIGroupDiscoveryList" && version == "v2" && group == "apidiscovery.k8s.io":
			return true
		}
	}
	return false
}

// document returns what build makes of the types as they are now; its data is nil where that is nothing.
func (h *handler) document(path, media string, build builder) (document, error) {
	types, generation := h.backend.ServedTypes()
	key := media + " " + path
	// the host that was asked, so that it is for nobody else
	names := path == "/api" && media != aggregatedMedia

	h.documents.Lock()
	defer h.documents.Unlock()
	if h.documents.generation != generation || h.documents.built == nil {
		h.documents.generation, h.documents.built = generation, map[string]document{}
	}
	if d, ok := h.documents.built[key]; ok && !names {
		return d, nil
	}
	if _, writable := h.writable(); writable {
		for i := range types { // which are a copy
			types[i].writable = true
		}
	}
	content := build(types)
	if content == nil {
		return document{}, nil // not kept: there is no end of paths that are nothing
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
	d := document{media: media, data: data, etag: fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(data)))}
	if !names {
		h.documents.built[key] = d
	}
	return d, nil
}

// serve writes the document, unless the client has it already.
func (d document) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", d.etag)
	w.Header().Set("Vary", "Accept")
	if d.media == aggregatedMedia {
		w.Header().Set("Cache-Control", "public")
	}
	if r.Header.Get("If-None-Match") == d.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", d.media)
	_, _ = w.Write(d.data) // the client has gone: nobody is left to tell
}
