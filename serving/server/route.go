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
	"github.com/crdcache/crdcache/serving/readapi"
)

const metricsComponent = "crdcached"

// maxURIBytes is the maximum length of a request's URL: two selectors of 64 KB each.
const maxURIBytes = 128 << 10

func rejectLongURLs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > maxURIBytes {
			http.Error(w, fmt.Sprintf("the URL has %d bytes; the limit is %d",
				len(r.RequestURI), maxURIBytes), http.StatusRequestURITooLong)
			return
		}
		next.ServeHTTP(w, r)
	})
}

type router struct {
	cache          *typeCache
	reviews        *reviewHandler
	limits         *limits
	watches        *watchLimits
	page           http.Handler // nil if disabled
	genericHandler http.Handler // health, metrics, and 404
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
		rt.limits.serveLimited(w, r, user.GetName(), false, rt.reviews)
	case info.IsResourceRequest:
		rt.serveType(w, r, info, user.GetName())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "405: Method Not Allowed", http.StatusMethodNotAllowed) // the text of kube-apiserver
	case isDiscovery(path) || strings.HasPrefix(path, queryPrefix+"/"):
		rt.limits.serveLimited(w, r, user.GetName(), false, rt.cache.live)
	case rt.page != nil && isPage(path):
		rt.limits.serveLimited(w, r, user.GetName(), isStream(path), rt.page)
	case path == typeChecksPath:
		rt.cache.serveTypeChecks(w)
	default:
		rt.genericHandler.ServeHTTP(w, r)
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
	request, ok := parseTypeRequest(r)
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		readapi.WriteError(w, r, errReadOnly(gr, info.Verb))
		return
	case !ok && slices.Contains([]string{"proxy", "exec", "attach", "portforward"}, info.Subresource):
		readapi.WriteError(w, r, errReadOnly(gr, info.Subresource))
		return
	case !ok || !matchesRequestInfo(info, request):
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
	handler := http.Handler(rt.cache.live)
	if isWatch {
		handler = rt.watches.limit(handler)
	}
	instrumented := metrics.InstrumentHandlerFunc(strings.ToUpper(info.Verb), gr.Group,
		metricsRequest.APIVersion,
		gr.Resource, metricsRequest.Subresource,
		metrics.CleanScope(info), metricsComponent, false, "", func(w http.ResponseWriter, r *http.Request) {
			rt.limits.serveLimited(w, r, user, isWatch, handler)
		})
	if !isWatch {
		instrumented(w, r)
		return
	}
	metrics.RecordLongRunning(r, metricsRequest, metricsComponent, func() { instrumented(w, r) })
}

// otherLabel replaces unknown versions and subresources in metrics.
const otherLabel = "other"

// metricsInfo returns the request info for metrics, without unknown versions and subresources. Label values
// stay in memory, so clients could fill the memory with invented values.
func metricsInfo(info *apirequest.RequestInfo, cached discovery.Resource) *apirequest.RequestInfo {
	metricsRequest := *info
	if info.APIVersion != cached.GVR.Version {
		metricsRequest.APIVersion = otherLabel
	}
	if !slices.Contains([]string{"", "status", "scale"}, info.Subresource) {
		metricsRequest.Subresource = otherLabel
	}
	return &metricsRequest
}

// isLongRunning reports whether a request is long-running: a watch, or the stream of the page.
func isLongRunning(r *http.Request, info *apirequest.RequestInfo) bool {
	return info.Verb == "watch" && info.IsResourceRequest || !info.IsResourceRequest && isStream(info.Path)
}

// dropBody removes protocol upgrades and the body from requests. Reviews keep their body.
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
