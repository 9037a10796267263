package server

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/readapi"
)

// queryPrefix is what stands before the path of a type in requests that query it.
const queryPrefix = "/query"

// queryResolver tells what a request is authorized as. A query is a list, or a watch, of the type that it is
// on.
type queryResolver struct{ apirequest.RequestInfoResolver }

// NewRequestInfo implements RequestInfoResolver.
func (q queryResolver) NewRequestInfo(r *http.Request) (*apirequest.RequestInfo, error) {
	inner, ok := queried(r)
	if !ok {
		inner = r
	}
	info, err := q.RequestInfoResolver.NewRequestInfo(inner)
	if info != nil {
		info.Path = r.URL.Path
		info.LabelSelector, info.FieldSelector = reviewed(info.LabelSelector), reviewed(info.FieldSelector)
	}
	return info, err
}

// maxReviewedSelector is the length of the longest selector that is a part of reviews. Reviews with selectors
// are remembered by these, in thousands.
const maxReviewedSelector = 1 << 10

// reviewed returns the selector that a request is authorized with. Without one, it takes the right to all
// objects.
func reviewed(selector string) string {
	if len(selector) > maxReviewedSelector {
		return ""
	}
	return selector
}

// queried returns the list or watch that a query is on. It has no field selector: one by name would have the
// right to one object suffice, and a query does not heed it.
func queried(r *http.Request) (*http.Request, bool) {
	path, ok := strings.CutPrefix(r.URL.Path, queryPrefix+"/")
	if !ok {
		return nil, false
	}
	params := r.URL.Query()
	params.Del("fieldSelector")
	inner := new(http.Request)
	*inner = *r
	inner.URL = &url.URL{Path: "/" + path, RawQuery: params.Encode()}
	return inner, true
}

// asked returns what the cache takes a request for, as far as it is about a type.
func asked(r *http.Request) (readapi.Request, bool) {
	if inner, ok := queried(r); ok {
		r = inner
	}
	return readapi.ParseRequest(r)
}

// agrees reports whether the cache answers what has been authorized. Both read the address by code of their
// own, and a difference would be a hole.
func agrees(info *apirequest.RequestInfo, asked readapi.Request) bool {
	verb := asked.Verb
	if verb == "watch-list" {
		verb = "watch"
	}
	namespace := info.Namespace
	if info.Resource == "namespaces" && asked.Name != "" && namespace == asked.Name {
		namespace = "" // a namespace is authorized in itself, and is in none
	}
	name := info.Name
	if asked.Name == "" && (verb == "list" || verb == "watch") {
		name = "" // of a field selector, which both read with the same code
	}
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion,
		Resource: info.Resource}
	return verb == info.Verb && asked.GVR == gvr && asked.Namespace == namespace && asked.Name == name &&
		asked.Subresource == info.Subresource
}
