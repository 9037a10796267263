package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/readapi"
)

// component is what metrics call the server.
const component = "crdcached"

// maxURI is how long the address of a request may be. The longest that is of use has two selectors, of 64 KB
// each.
const maxURI = 128 << 10

// refuseLong answers requests whose address is too long, before anything is made of it.
func refuseLong(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > maxURI {
			http.Error(w, fmt.Sprintf("the address has %d bytes, and more than %d are not served",
				len(r.RequestURI), maxURI), http.StatusRequestURITooLong)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// router serves what has been authorized.
type router struct {
	cache   *cache
	reviews *reviews
	limits  *limits
	watches *watchTimes
	page    http.Handler // nil for none
	generic http.Handler // health, metrics, and 404
}

// ServeHTTP implements http.Handler.
func (h *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	user, known := apirequest.UserFrom(r.Context())
	if !ok || !known {
		readapi.WriteError(w, r, apierrors.NewInternalError(fmt.Errorf("the request was not authorized")))
		return
	}
	path := r.URL.Path
	switch {
	case isReview(r):
		h.limits.serve(w, r, user.GetName(), false, h.reviews)
	case info.IsResourceRequest:
		h.serveType(w, r, info, user.GetName())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "405: Method Not Allowed", http.StatusMethodNotAllowed) // as a kube-apiserver says it
	case isDiscovery(path) || strings.HasPrefix(path, queryPrefix+"/"):
		h.limits.serve(w, r, user.GetName(), false, h.cache.live)
	case h.page != nil && isPage(path):
		h.limits.serve(w, r, user.GetName(), isStream(path), h.page)
	case path == typesPath:
		h.cache.serveConditions(w)
	default:
		h.generic.ServeHTTP(w, r)
	}
}

// isDiscovery reports whether a path is one by which clients learn what the cluster serves.
func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "version":
		return len(parts) == 1
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	case "openapi":
		return true
	}
	return false
}

// serveType serves a request for objects.
func (h *router) serveType(w http.ResponseWriter, r *http.Request,
	info *apirequest.RequestInfo, user string) {
	asked, ok := asked(r)
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		readapi.WriteError(w, r, errReadOnly(gr, info.Verb))
		return
	case !ok && slices.Contains([]string{"proxy", "exec", "attach", "portforward"}, info.Subresource):
		readapi.WriteError(w, r, errReadOnly(gr, info.Subresource))
		return
	case !ok || !agrees(info, asked):
		readapi.WriteError(w, r,
			apierrors.NewBadRequest(fmt.Sprintf("%s is not an address that is served here", r.URL.Path)))
		return
	}
	kept, ok := h.cache.keeps(gr)
	if !ok {
		readapi.WriteError(w, r, h.cache.errNotCached(gr))
		return
	}
	measured := measuredAs(info, kept)
	long := info.Verb == "watch"
	served := http.Handler(h.cache.live)
	if long {
		served = h.watches.bound(served)
	}
	instrumented := metrics.InstrumentHandlerFunc(strings.ToUpper(info.Verb), gr.Group, measured.APIVersion,
		gr.Resource, measured.Subresource,
		metrics.CleanScope(info), component, false, "", func(w http.ResponseWriter, r *http.Request) {
			h.limits.serve(w, r, user, long, served)
		})
	if !long {
		instrumented(w, r)
		return
	}
	metrics.RecordLongRunning(r, measured, component, func() { instrumented(w, r) })
}

// other is what metrics call versions and subresources that users may have invented.
const other = "other"

// measuredAs returns what metrics take a request for. Each version and subresource that they tell apart takes
// memory for ever, and whoever may read a type may name any version of it.
func measuredAs(info *apirequest.RequestInfo, kept discovery.Resource) *apirequest.RequestInfo {
	measured := *info
	if info.APIVersion != kept.GVR.Version {
		measured.APIVersion = other
	}
	if !slices.Contains([]string{"", "status", "scale"}, info.Subresource) {
		measured.Subresource = other
	}
	return &measured
}

// isLong reports whether a request is one that goes on: a watch, or the stream of the page.
func isLong(r *http.Request, info *apirequest.RequestInfo) bool {
	return info.Verb == "watch" && info.IsResourceRequest || !info.IsResourceRequest && isStream(info.Path)
}

// bodyless removes the parts of a request that reading does not need: the body, except of reviews, and a
// protocol upgrade.
func bodyless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := r.Body
		r = r.Clone(r.Context())
		if isReview(r) {
			r.Body = http.MaxBytesReader(w, body, maxReview)
		} else {
			r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
		}
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
		next.ServeHTTP(w, r)
	})
}
