package live

import (
	"net/http"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/serving/readapi"
)

// ServedHeader is the response header that names the source of an answer: "cache" or "cluster". An answer
// without it is an error.
const ServedHeader = "Crdcache-Served"

// Values of ServedHeader, and other headers of answers.
const (
	servedByCache   = "cache"
	servedByCluster = "cluster"
	prunedHeader    = "Crdcache-Pruned"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, hasType := readapi.ParseRequest(r)
	switch path := r.URL.Path; {
	case path == "/healthz" || path == "/livez" || path == "/readyz":
		s.handler.ServeHTTP(w, r)
	case strings.HasPrefix(path, queryPrefix+"/"):
		s.serveQuery(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		err := apierrors.NewMethodNotSupported(request.GVR.GroupResource(), request.Verb)
		readapi.WriteError(w, r, err)
	case pathpkg.Clean(path) != "/"+strings.TrimRight(strings.TrimPrefix(path, "/"), "/"):
		s.handler.ServeHTTP(w, r) // it answers unknown paths
	case slices.Contains(writingSubresources, subresource(path)):
		readapi.WriteError(w, r, apierrors.NewMethodNotSupported(schema.GroupResource{}, subresource(path)))
	case hasType && s.serveCached(w, r, request):
	default:
		s.upstream.proxy.ServeHTTP(w, r)
	}
}

// writingSubresources are subresources with side effects of GET.
var writingSubresources = []string{"exec", "attach", "portforward", "proxy"}

// subresource returns the part of a path after the name of an object.
func subresource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return ""
	}
	if parts[0] == "namespaces" && len(parts) > 4 {
		parts = parts[2:]
	}
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// serveCached answers from the cache if possible, and reports whether it has answered.
func (s *Server) serveCached(w http.ResponseWriter, r *http.Request, request readapi.Request) bool {
	var c *collection
	if cache := s.cacheOf(request.GVR.GroupResource()); cache != nil {
		c = cache.collection()
	}
	if c == nil || !c.serves(r, request) {
		return false
	}
	if err := c.awaitRequested(r, request); err != nil {
		if r.Context().Err() == nil {
			w.Header().Set(ServedHeader, servedByCache)
			readapi.WriteError(w, r, err)
		}
		return true
	}
	w.Header().Set(ServedHeader, servedByCache)
	if c.informer.History().Pruned {
		w.Header().Set(prunedHeader, "true")
		if strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "as=Table") {
			c.warnDroppedColumns(w.Header())
		}
	}
	s.handler.ServeHTTP(w, r)
	return true
}

// serves reports whether the cache answers like the API server.
func (c *collection) serves(r *http.Request, request readapi.Request) bool {
	cachedNamespace := c.informer.History().Namespace
	query := r.URL.Query()
	switch accept := strings.Join(r.Header.Values("Accept"), ","); {
	case request.GVR != c.gvr, request.Subresource != "":
		return false
	case cachedNamespace != "" && request.Namespace != cachedNamespace:
		return false
	case mayHaveLostAccess(c.informer.Status()), c.isPolled():
		return false
	case accept != "" && !isSupportedMediaType(accept):
		return false
	case !c.typ.Custom && strings.Contains(accept, "as=Table"):
		return false
	case request.Verb == "get" && query.Get("resourceVersion") == "" && !allowsStale(r):
		return false // a forwarded get costs as much as a freshness check
	}
	return c.knowsFields(query.Get("fieldSelector"))
}

// mayHaveLostAccess reports whether the API server can have revoked the access of an informer. Clients must
// then not read its cache either.
func mayHaveLostAccess(s status.Status) bool {
	return s.Reason == status.ReasonForbidden || s.Reason == status.ReasonUnauthorized
}

// isPolled reports whether the API server only lists the type. Its versions, if it has any, say nothing about
// the state between two lists.
func (t *typeCache) isPolled() bool { return t.informer.Status().Reason == status.ReasonPolled }

func isSupportedMediaType(accept string) bool {
	return strings.Contains(accept, "json") || strings.Contains(accept, "yaml") ||
		strings.Contains(accept, "*")
}

// knowsFields reports whether the cache knows all fields of a field selector. The fields of built-in types,
// and selectable fields that the cache drops, are known only to a kube-apiserver.
func (c *collection) knowsFields(selector string) bool {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return true // the handler reports the error like the API server
	}
	return !slices.ContainsFunc(parsed.Requirements(), func(f fields.Requirement) bool {
		switch _, index, _ := c.indexKey(f.Field, f.Value); {
		case f.Field == metav1.ObjectNameField, f.Field == "metadata.namespace":
			return false
		case c.typ.Custom:
			return slices.Contains(c.droppedSelectable, "."+f.Field)
		default:
			return index == nil
		}
	})
}

func allowsStale(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Cache-Control"), "max-stale")
}

// awaitRequested blocks until the cache has reached the requested version. For a watch or a later page, it
// also blocks until it is known whether the client can continue.
func (c *collection) awaitRequested(r *http.Request, request readapi.Request) error {
	query := r.URL.Query()
	text := query.Get("resourceVersion")
	version, err := strconv.ParseUint(text, 10, 64)
	isExact := query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact)
	switch {
	case query.Get("continue") != "":
		return c.waitForPage(r, request)
	case text == "0" || text != "" && err != nil, allowsStale(r):
		return nil // the handler reports the error
	case text != "" && request.Verb != "watch" && c.ResourceVersion() < version:
		return c.waitForVersion(r.Context(), version)
	case text != "" && request.Verb == "watch" && c.ResourceVersion() < version:
		return c.waitForWatchVersion(r.Context(), version)
	case text != "" && (request.Verb == "watch" || request.Verb == "list" && isExact):
		c.awaitGapCheck(r.Context(), version)
	case text == "" && (request.Verb == "list" || request.Verb == "watch-list"):
		return c.waitUntilFresh(r.Context())
	}
	return nil
}

// waitForPage is awaitRequested for a later page of a list.
func (c *collection) waitForPage(r *http.Request, request readapi.Request) error {
	version, _, err := readapi.ParseContinueToken(r.URL.Query().Get("continue"), request.Namespace)
	switch {
	case err != nil || version <= 0: // the handler reports the error
	case c.ResourceVersion() < uint64(version):
		return c.waitForVersion(r.Context(), uint64(version)) // the list can have begun at another server
	default:
		c.awaitGapCheck(r.Context(), uint64(version))
	}
	return nil
}
