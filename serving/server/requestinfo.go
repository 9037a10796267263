package server

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/serving/readapi"
)

// queryPrefix precedes the path of a type in requests that query it.
const queryPrefix = "/query"

// queryResolver resolves a query as a list or watch of its type.
type queryResolver struct{ apirequest.RequestInfoResolver }

func (q queryResolver) NewRequestInfo(r *http.Request) (*apirequest.RequestInfo, error) {
	typeRequest, ok := queryAsTypeRequest(r)
	if !ok {
		typeRequest = r
	}
	info, err := q.RequestInfoResolver.NewRequestInfo(typeRequest)
	if info != nil {
		info.Path = r.URL.Path
		info.LabelSelector, info.FieldSelector = selectorForReview(info.LabelSelector),
			selectorForReview(info.FieldSelector)
	}
	return info, err
}

// maxReviewedSelectorLength limits the length of selectors in access reviews, because thousands of reviews
// are cached by their selectors.
const maxReviewedSelectorLength = 1 << 10

// selectorForReview omits long selectors. Without a selector, the user needs access to all objects.
func selectorForReview(selector string) string {
	if len(selector) > maxReviewedSelectorLength {
		return ""
	}
	return selector
}

// queryAsTypeRequest returns the list or watch of a query, without its field selector. Queries ignore field
// selectors. With a selector by name, the authorizer would check access to only one object.
func queryAsTypeRequest(r *http.Request) (*http.Request, bool) {
	path, ok := strings.CutPrefix(r.URL.Path, queryPrefix+"/")
	if !ok {
		return nil, false
	}
	params := r.URL.Query()
	params.Del("fieldSelector")
	typeRequest := new(http.Request)
	*typeRequest = *r
	typeRequest.URL = &url.URL{Path: "/" + path, RawQuery: params.Encode()}
	return typeRequest, true
}

// parseTypeRequest returns the request as the cache parses it, or false if it is not for a type.
func parseTypeRequest(r *http.Request) (readapi.Request, bool) {
	if typeRequest, ok := queryAsTypeRequest(r); ok {
		r = typeRequest
	}
	return readapi.ParseRequest(r)
}

// matchesRequestInfo reports whether the cache and the authorization parse a request alike. They use
// different code, and a difference would be a security hole.
func matchesRequestInfo(info *apirequest.RequestInfo, requested readapi.Request) bool {
	verb := requested.Verb
	if verb == "watch-list" {
		verb = "watch"
	}
	namespace := info.Namespace
	if info.Resource == "namespaces" && requested.Name != "" && namespace == requested.Name {
		namespace = "" // the authorizer sets the namespace of a Namespace object, the cache does not
	}
	name := info.Name
	if requested.Name == "" && (verb == "list" || verb == "watch") {
		name = "" // from a field selector, which both parse with the same code
	}
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion,
		Resource: info.Resource}
	return verb == info.Verb && requested.GVR == gvr && requested.Namespace == namespace &&
		requested.Name == name && requested.Subresource == info.Subresource
}
