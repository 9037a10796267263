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
	// pagePrefix is the path of the page; browsers open openPath.
	pagePrefix = "/page"
	openPath   = pagePrefix + "/open"
	// namespacesPrefix precedes a list of namespaces in a URL. The page then also shows objects that the user
	// may list only in these namespaces.
	namespacesPrefix = pagePrefix + "/namespaces/"
	// maxNamespaces limits that list, because each type needs an access review per namespace.
	maxNamespaces = 16
)

func isPage(path string) bool { return strings.HasPrefix(path, pagePrefix+"/") }

func splitPage(path string) (prefix string, namespaces []string) {
	rest, ok := strings.CutPrefix(path, namespacesPrefix)
	names, _, hasSlash := strings.Cut(rest, "/")
	if !ok || !hasSlash {
		return pagePrefix, nil
	}
	return namespacesPrefix + names, strings.Split(names, ",")
}

// isStream reports whether a path is the page's stream of changes.
func isStream(path string) bool {
	prefix, _ := splitPage(path)
	return path == prefix+"/api/stream"
}

// page shows cached objects in a browser. Each user sees the objects that they may list, in all namespaces
// or in the namespaces of the URL. Each request is authorized like an API request. There is no session, so
// several replicas can serve one browser. Requests of other sites are detected by the headers of the browser.
type page struct {
	cache       *typeCache
	handler     *web.Handler
	definitions *dynamicinformer.Handle
	authorizer  authorizer.UnconditionalAuthorizer
	rights      *rights
	watches     *watchTimes
}

// newPage returns the page of a cache. requests authorizes requests. reviews answers which types a user may
// list; it has a separate client, so that the page does not delay other requests.
func newPage(c *typeCache, config PageConfig, watches *watchTimes, requests,
	reviews authorizer.UnconditionalAuthorizer) (*page, error) {
	definitions, err := c.factory.Acquire(crd.GVR) // released by close
	if err != nil {
		return nil, err
	}
	source := web.Source{Title: "crdcached", Factory: c.factory,
		Definition: web.Definitions(definitions.Informer()), Declarations: c.declarations,
		Notice: c.filesNotice}
	p := &page{cache: c, definitions: definitions, watches: watches, authorizer: requests}
	options := web.Options{Hosts: config.Hosts, Visible: p.visibleScopes, Known: p.knownScopes, User: userOf,
		Authenticated: true}
	if p.handler, err = web.NewHandler(source, options); err != nil {
		definitions.Release()
		return nil, err
	}
	p.rights = newRights(reviews)
	return p, nil
}

func (p *page) close() {
	p.handler.Close()
	p.rights.close()
	p.definitions.Release()
}

func userOf(r *http.Request) string {
	user, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return ""
	}
	return user.GetName()
}

// namespacesKey is the context key of the namespaces of a page.
type namespacesKey struct{}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == openPath {
		p.redirectToPage(w, r)
		return
	}
	prefix, namespaces := splitPage(r.URL.Path)
	if err := checkNamespaces(namespaces); err != nil {
		readapi.WriteError(w, r, err)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), namespacesKey{}, namespaces))
	if isStream(r.URL.Path) {
		ctx, cancel := p.watches.context(r.Context(), p.watches.randomDuration())
		defer cancel()
		r = r.WithContext(ctx)
	}
	http.StripPrefix(prefix, p.handler).ServeHTTP(w, r)
}

// redirectToPage redirects a browser to the page of the given namespaces.
func (p *page) redirectToPage(w http.ResponseWriter, r *http.Request) {
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
	location := "./" // relative, because a proxy can add a prefix
	if len(namespaces) > 0 {
		location = "namespaces/" + strings.Join(namespaces, ",") + "/"
	}
	if !p.handler.Allow(w, r) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}

func checkNamespaces(names []string) error {
	if len(names) > maxNamespaces {
		return apierrors.NewBadRequest(fmt.Sprintf("%d namespaces are given; the page shows at most %d",
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

func (c *typeCache) declarations(informer *dynamicinformer.Informer) web.Declarations {
	k, ok := c.cachedType(informer.GVR())
	if !ok || k.Informer != informer {
		return web.Declarations{}
	}
	return web.Declarations{Source: k.Source(), Indexes: k.Indexes, References: c.referencesOf(k.GVR)}
}

func (c *typeCache) referencesOf(gvr schema.GroupVersionResource) []*indexers.Reference {
	if k, ok := c.cachedType(gvr); ok {
		return k.References
	}
	return nil
}

// cachedType returns a cached type, if it is cached in that version.
func (c *typeCache) cachedType(gvr schema.GroupVersionResource) (live.CachedType, bool) {
	k, ok := c.reconciler.Type(gvr.GroupResource())
	return k, ok && k.GVR == gvr
}
