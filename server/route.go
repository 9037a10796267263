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

// metricsComponent is the server's name in metrics.
const metricsComponent = "crdcached"

// maxURI is the maximum length of a request's URL: two selectors of 64 KB each.
const maxURI = 128 << 10

func rejectLongURLs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > maxURI {
			http.Error(w, fmt.Sprintf("the URL has %d bytes; the limit is %d",
				len(r.RequestURI), maxURI), http.StatusRequestURITooLong)
			return
		}
		next.ServeHTTP(w, r)
	})
}

type router struct {
	cache   *typeCache
	reviews *reviewHandler
	limits  *limits
	watches *watchTimes
	page    http.Handler // nil if disabled
	generic http.Handler // health, metrics, and 404
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	user, isKnown := apirequest.UserFrom(r.Context())
	if !ok || !isKnown {
		readapi.WriteError(w, r, apierrors.NewInternalError(fmt.Errorf("the request is not authorized")))
		return
	}
	path := r.URL.Path
	switch {
	case path == aggregatedPath:
		serveAggregatedGroup(w)
	case isAggregator(user):
		http.NotFound(w, r)
	case isReview(r):
		rt.limits.serve(w, r, user.GetName(), false, rt.reviews)
	case info.IsResourceRequest:
		rt.serveType(w, r, info, user.GetName())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "405: Method Not Allowed", http.StatusMethodNotAllowed) // the text of kube-apiserver
	case isDiscovery(path) || strings.HasPrefix(path, queryPrefix+"/"):
		rt.limits.serve(w, r, user.GetName(), false, rt.cache.live)
	case rt.page != nil && isPage(path):
		rt.limits.serve(w, r, user.GetName(), isStream(path), rt.page)
	case path == typesPath:
		rt.cache.serveTypeChecks(w)
	default:
		rt.generic.ServeHTTP(w, r)
	}
}

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

func (rt *router) serveType(w http.ResponseWriter, r *http.Request,
	info *apirequest.RequestInfo, user string) {
	requested, ok := parsedRequest(r)
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		readapi.WriteError(w, r, errReadOnly(gr, info.Verb))
		return
	case !ok && slices.Contains([]string{"proxy", "exec", "attach", "portforward"}, info.Subresource):
		readapi.WriteError(w, r, errReadOnly(gr, info.Subresource))
		return
	case !ok || !matchesAuthorized(info, requested):
		readapi.WriteError(w, r,
			apierrors.NewBadRequest(fmt.Sprintf("crdcached does not serve the path %s", r.URL.Path)))
		return
	}
	cached, ok := rt.cache.cachedVersion(gr)
	if !ok {
		readapi.WriteError(w, r, rt.cache.errNotCached(gr))
		return
	}
	metricsRequest := metricsInfo(info, cached)
	isWatch := info.Verb == "watch"
	served := http.Handler(rt.cache.live)
	if isWatch {
		served = rt.watches.limit(served)
	}
	instrumented := metrics.InstrumentHandlerFunc(strings.ToUpper(info.Verb), gr.Group,
		metricsRequest.APIVersion,
		gr.Resource, metricsRequest.Subresource,
		metrics.CleanScope(info), metricsComponent, false, "", func(w http.ResponseWriter, r *http.Request) {
			rt.limits.serve(w, r, user, isWatch, served)
		})
	if !isWatch {
		instrumented(w, r)
		return
	}
	metrics.RecordLongRunning(r, metricsRequest, metricsComponent, func() { instrumented(w, r) })
}

// otherLabel replaces unknown versions and subresources in metrics.
const otherLabel = "other"

// metricsInfo returns the request info for metrics, without unknown versions and subresources. A label value
// is never freed, so clients could fill the memory with invented ones.
func metricsInfo(info *apirequest.RequestInfo, cached discovery.Resource) *apirequest.RequestInfo {
	measured := *info
	if info.APIVersion != cached.GVR.Version {
		measured.APIVersion = otherLabel
	}
	if !slices.Contains([]string{"", "status", "scale"}, info.Subresource) {
		measured.Subresource = otherLabel
	}
	return &measured
}

// isLongRunning reports whether a request is long-running: a watch, or the stream of the page.
func isLongRunning(r *http.Request, info *apirequest.RequestInfo) bool {
	return info.Verb == "watch" && info.IsResourceRequest || !info.IsResourceRequest && isStream(info.Path)
}

// dropBody removes the body, except of reviews, and protocol upgrades from requests.
func dropBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := r.Body
		r = r.Clone(r.Context())
		if isReview(r) {
			r.Body = http.MaxBytesReader(w, body, maxReviewBytes)
		} else {
			r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
		}
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
		next.ServeHTTP(w, r)
	})
}
