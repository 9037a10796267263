package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/web"
)

const (
	// pagePrefix is where the page is, and openPath what a browser opens first.
	pagePrefix = "/page"
	openPath   = pagePrefix + "/open"
)

func isPage(path string) bool { return strings.HasPrefix(path, pagePrefix+"/") }

// isStream reports whether a path is that of the changes that the page shows.
func isStream(path string) bool { return path == pagePrefix+"/api/stream" }

// page shows in a browser what is kept. It knows no namespaces, so it is for users who may list every type in all of them;
// each request is authorized, as those of the API are. The session of package web is asked for besides, which keeps other
// sites from making requests of the browser's certificate.
type page struct {
	cache       *cache
	handler     *web.Handler
	definitions *dynamicinformer.Handle
	authorizer  authorizer.UnconditionalAuthorizer
	codecs      runtime.NegotiatedSerializer
	watches     *watchTimes
}

func newPage(c *cache, config PageConfig, watches *watchTimes) (*page, error) {
	definitions, err := c.factory.Acquire(crd.GVR) // released by close
	if err != nil {
		return nil, err
	}
	source := web.Source{Title: "crdcached", Factory: c.factory, Definition: web.Definitions(definitions.Informer()), Indexes: c.indexesOf, References: c.referencesOf}
	handler, err := web.NewHandler(source, web.Options{Hosts: config.Hosts})
	if err != nil {
		definitions.Release()
		return nil, err
	}
	return &page{cache: c, handler: handler, definitions: definitions, watches: watches}, nil
}

// close ends what the page follows.
func (p *page) close() {
	p.handler.Close()
	p.definitions.Release()
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if attributes, reason, err := p.refusal(r); err != nil {
		readapi.WriteError(w, r, apierrors.NewInternalError(err))
		return
	} else if attributes != nil {
		responsewriters.Forbidden(attributes, w, r, reason, p.codecs)
		return
	}
	if r.URL.Path == openPath {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Location", strings.TrimPrefix(p.handler.Login(), "/")) // relative: a proxy may have a path before it
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	if isStream(r.URL.Path) {
		ctx, cancel := p.watches.context(r.Context(), p.watches.random())
		defer cancel()
		r = r.WithContext(ctx)
	}
	http.StripPrefix(pagePrefix, p.handler).ServeHTTP(w, r)
}

// refusal returns what the user may not do of what the page takes; nil for nothing.
func (p *page) refusal(r *http.Request) (attributes authorizer.Attributes, reason string, err error) {
	user, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return nil, "", errors.New("the request was not authenticated")
	}
	types := []schema.GroupVersionResource{crd.GVR}
	for _, k := range p.cache.list() {
		types = append(types, k.resource.GVR)
	}
	for _, gvr := range types {
		asked := authorizer.AttributesRecord{
			User: user, Verb: "list", APIGroup: gvr.Group, APIVersion: gvr.Version, Resource: gvr.Resource, ResourceRequest: true,
		}
		decision, reason, err := p.authorizer.Authorize(r.Context(), asked)
		if decision == authorizer.DecisionAllow {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("asking for the right to list %s: %w", gvr.GroupResource(), err)
		}
		return asked, reason, nil
	}
	return nil, "", nil
}

// indexesOf are those of a type that is kept.
func (c *cache) indexesOf(gvr schema.GroupVersionResource) []*indexers.Index {
	if k := c.get(gvr); k != nil {
		return k.indexes
	}
	return nil
}

// referencesOf are what the objects of a type that is kept refer to.
func (c *cache) referencesOf(gvr schema.GroupVersionResource) []*indexers.Reference {
	if k := c.get(gvr); k != nil {
		return c.selection.indexes.ReferencesOf(k.resource.GVR, k.resource.GVK.Kind)
	}
	return nil
}

// get returns what keeps a type in a version, or nil.
func (c *cache) get(gvr schema.GroupVersionResource) *keptType {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.mu.types[gvr.GroupResource()]; k != nil && k.resource.GVR == gvr {
		return k
	}
	return nil
}
