package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/live"
	"github.com/crdcache/crdcache/web"
)

const (
	// pagePrefix is where the page is, and openPath what a browser opens first.
	pagePrefix = "/page"
	openPath   = pagePrefix + "/open"
	// namespacesPrefix is where it shows, besides what may be listed in all namespaces, what may be in those
	// that follow.
	namespacesPrefix = pagePrefix + "/namespaces/"
	// maxNamespaces is how many these may be: for each type, the server asks for the right to each of them.
	maxNamespaces = 16
)

func isPage(path string) bool { return strings.HasPrefix(path, pagePrefix+"/") }

// splitPage returns where the page is that a path is of, and for which namespaces.
func splitPage(path string) (prefix string, namespaces []string) {
	rest, ok := strings.CutPrefix(path, namespacesPrefix)
	names, _, whole := strings.Cut(rest, "/")
	if !ok || !whole {
		return pagePrefix, nil
	}
	return namespacesPrefix + names, strings.Split(names, ",")
}

// isStream reports whether a path is that of the changes that the page shows.
func isStream(path string) bool {
	prefix, _ := splitPage(path)
	return path == prefix+"/api/stream"
}

// page shows the cached objects in a browser: to each user the objects that they may list, in all namespaces
// or in those that they name. Each request is authorized like a request of the API. It needs no session, so
// that several replicas can serve one browser; the headers of browsers tell requests of other sites apart.
type page struct {
	cache       *cache
	handler     *web.Handler
	definitions *dynamicinformer.Handle
	authorizer  authorizer.UnconditionalAuthorizer
	rights      *rights
	watches     *watchTimes
}

// newPage returns the page of a cache. The authorizer answers requests, and reviews fills the lists of types;
// it has its own client, so that a user of the page slows no other requests down.
func newPage(c *cache, config PageConfig, watches *watchTimes, requests,
	reviews authorizer.UnconditionalAuthorizer) (*page, error) {
	definitions, err := c.factory.Acquire(crd.GVR) // released by close
	if err != nil {
		return nil, err
	}
	source := web.Source{Title: "crdcached", Factory: c.factory,
		Definition: web.Definitions(definitions.Informer()), Indexes: c.indexesOf, References: c.referencesOf}
	p := &page{cache: c, definitions: definitions, watches: watches, authorizer: requests}
	options := web.Options{Hosts: config.Hosts, Visible: p.visible, Known: p.known, User: userOf,
		Authenticated: true}
	if p.handler, err = web.NewHandler(source, options); err != nil {
		definitions.Release()
		return nil, err
	}
	p.rights = newRights(reviews)
	return p, nil
}

// close ends what the page follows.
func (p *page) close() {
	p.handler.Close()
	p.rights.close()
	p.definitions.Release()
}

// userOf is who sends a request.
func userOf(r *http.Request) string {
	user, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return ""
	}
	return user.GetName()
}

// namespacesKey is of what a context has for a page of namespaces.
type namespacesKey struct{}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == openPath {
		p.open(w, r)
		return
	}
	prefix, namespaces := splitPage(r.URL.Path)
	if err := checkNamespaces(namespaces); err != nil {
		readapi.WriteError(w, r, err)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), namespacesKey{}, namespaces))
	if isStream(r.URL.Path) {
		ctx, cancel := p.watches.context(r.Context(), p.watches.random())
		defer cancel()
		r = r.WithContext(ctx)
	}
	http.StripPrefix(prefix, p.handler).ServeHTTP(w, r)
}

// open leads a browser to the page of the namespaces that it names.
func (p *page) open(w http.ResponseWriter, r *http.Request) {
	var namespaces []string
	for _, names := range r.URL.Query()["namespace"] {
		namespaces = append(namespaces, strings.Split(names, ",")...)
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	if err := checkNamespaces(namespaces); err != nil {
		readapi.WriteError(w, r, err)
		return
	}
	below := "./" // relative: a proxy may have a path before it
	if len(namespaces) > 0 {
		below = "namespaces/" + strings.Join(namespaces, ",") + "/"
	}
	if !p.handler.Allow(w, r) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", below)
	w.WriteHeader(http.StatusSeeOther)
}

func checkNamespaces(names []string) error {
	if len(names) > maxNamespaces {
		return apierrors.NewBadRequest(fmt.Sprintf("%d namespaces are named, and the page shows %d at once",
			len(names), maxNamespaces))
	}
	for _, name := range names {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("namespace %q: %s", name,
				strings.Join(problems, "; ")))
		}
	}
	return nil
}

// indexesOf are those of a type that is kept.
func (c *cache) indexesOf(gvr schema.GroupVersionResource) []*indexers.Index {
	if k, ok := c.get(gvr); ok {
		return k.Indexes
	}
	return nil
}

// referencesOf are what the objects of a type that is kept refer to.
func (c *cache) referencesOf(gvr schema.GroupVersionResource) []*indexers.Reference {
	if k, ok := c.get(gvr); ok {
		return c.selection.indexes.ReferencesOf(k.GVR, k.GVK.Kind)
	}
	return nil
}

// get returns what keeps a type in a version; false where nothing does.
func (c *cache) get(gvr schema.GroupVersionResource) (live.KeptType, bool) {
	k, ok := c.keeper.Type(gvr.GroupResource())
	return k, ok && k.GVR == gvr
}
