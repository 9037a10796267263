package readapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// document is an answer that only changes when the types do.
type document struct {
	media string
	data  []byte
	etag  string
}

// serveDocument serves discovery and OpenAPI, and reports whether the path is one of those.
func (h *handler) serveDocument(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	var build func(types []Type) any
	aggregated := false
	switch parts := strings.Split(path, "/"); {
	case path == "/openapi/v3":
		build = func(types []Type) any { return openAPIIndex(types) }
	case strings.HasPrefix(path, "/openapi/v3/"):
		build = func(types []Type) any { return openAPIOf(types, strings.TrimPrefix(path, "/openapi/v3/")) }
	case path == "/api" || path == "/apis":
		if aggregated = wantsAggregated(r.Header); aggregated {
			build = func(types []Type) any { return aggregate(types, path == "/api") }
			break
		}
		build = func(types []Type) any { return legacyRoot(types, path == "/api", r.Host) }
	case len(parts) == 3 && parts[1] == "api":
		build = func(types []Type) any { return legacyResources(types, "", parts[2]) }
	case len(parts) == 3 && parts[1] == "apis":
		build = func(types []Type) any { return legacyGroup(types, parts[2]) }
	case len(parts) == 4 && parts[1] == "apis":
		build = func(types []Type) any { return legacyResources(types, parts[2], parts[3]) }
	default:
		return false
	}
	d, err := h.document(path, aggregated, build)
	switch {
	case err != nil:
		writeError(w, r, err)
	case d.data == nil && strings.HasPrefix(path, "/api/"):
		writeError(w, r, errNoSuchResource())
	case d.data == nil:
		notFound(w)
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
		case kind == "" && a.media == mediaJSON:
			return false
		case kind == "APIGroupDiscoveryList" && version == "v2" && group == "apidiscovery.k8s.io":
			return true
		}
	}
	return false
}

// document returns what build makes of the types as they are now; its data is nil where that is nothing.
func (h *handler) document(path string, aggregated bool, build func([]Type) any) (document, error) {
	h.storage.mu.Lock()
	types, served := h.storage.typesLocked(), h.storage.mu.served
	h.storage.mu.Unlock()
	key := fmt.Sprint(path, aggregated)

	h.documents.Lock()
	defer h.documents.Unlock()
	if h.documents.served != served || h.documents.built == nil {
		h.documents.served, h.documents.built = served, map[string]document{}
	}
	if d, ok := h.documents.built[key]; ok {
		return d, nil
	}
	content := build(types)
	if content == nil {
		return document{}, nil // not kept: there is no end of paths that are nothing
	}
	data, err := json.Marshal(content)
	if err != nil {
		return document{}, err
	}
	d := document{media: mediaJSON, data: data, etag: fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(data)))}
	if aggregated {
		d.media = aggregatedMedia
	}
	h.documents.built[key] = d
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
	_, _ = w.Write(append(d.data[:len(d.data):len(d.data)], '\n')) // the client has gone: nobody is left to tell
}
