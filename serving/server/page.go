package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/serving/web"
)

const (
	// pagePrefix precedes the paths of the page. Users open openPath.
	pagePrefix = "/page"
	openPath   = pagePrefix + "/open"
	// namespacesPrefix precedes a list of namespaces. With this list, the page also shows objects that
	// the user may list only in these namespaces.
	namespacesPrefix = pagePrefix + "/namespaces/"
	// maxNamespaces bounds this list, because each type needs an access review per namespace.
	maxNamespaces = 16
)

func isPage(path string) bool { return strings.HasPrefix(path, pagePrefix+"/") }

func splitPagePath(path string) (prefix string, namespaces []string) {
	rest, ok := strings.CutPrefix(path, namespacesPrefix)
	names, _, hasSlash := strings.Cut(rest, "/")
	if !ok || !hasSlash {
		return pagePrefix, nil
	}
	return namespacesPrefix + names, strings.Split(names, ",")
}

// isStream reports whether a path is the page's stream of changes.
func isStream(path string) bool {
	prefix, _ := splitPagePath(path)
	return path == prefix+"/api/stream"
}

// page shows cached objects in a browser. Each user sees the objects that they may list, in all namespaces or
// in the namespaces of the URL. Each request is authorized like an API request. Several replicas can serve
// one browser, because there is no session. Requests of other sites are detected by the headers of the
// browser.
type page struct {
	cache      *typeCache
	handler    *web.Handler
	crdHandle  *dynamicinformer.Handle
	authorizer authorizer.UnconditionalAuthorizer
	rights     *accessReviewer
	watchTimes *watchLimits
}

// newPage returns the page of a cache. requestAuthorizer decides before objects are served, and
// reviewAuthorizer which types are shown. reviewAuthorizer has its own client, so that the page does not
// delay other requests.
func newPage(c *typeCache, config PageConfig, watches *watchLimits, requestAuthorizer,
	reviewAuthorizer authorizer.UnconditionalAuthorizer) (*page, error) {
	crdHandle, err := c.factory.Acquire(crd.GVR) // released by close
	if err != nil {
		return nil, err
	}
	source := web.Source{Title: "crdcached", Factory: c.factory,
		Binding: c.binding, Definition: web.Definitions(crdHandle.Informer()), Notice: c.configFileNotice}
	p := &page{cache: c, crdHandle: crdHandle, watchTimes: watches, authorizer: requestAuthorizer}
	options := web.Options{Hosts: config.Hosts, Visible: p.visibleScopes, Known: p.knownScopes,
		User:          userName,
		Authenticated: true}
	if p.handler, err = web.NewHandler(source, options); err != nil {
		crdHandle.Release()
		return nil, err
	}
	p.rights = newRights(reviewAuthorizer)
	return p, nil
}

func (p *page) close() {
	p.handler.Close()
	p.rights.close()
	p.crdHandle.Release()
}

func userName(r *http.Request) string {
	user, ok := apirequest.UserFrom(r.Context())
	if !ok {
		return ""
	}
	return user.GetName()
}

type namespacesKey struct{}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == openPath {
		p.redirectToPage(w, r)
		return
	}
	prefix, namespaces := splitPagePath(r.URL.Path)
	if err := validateNamespaces(namespaces); err != nil {
		readapi.WriteError(w, r, err)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), namespacesKey{}, namespaces))
	if isStream(r.URL.Path) {
		ctx, cancel := p.watchTimes.watchContext(r.Context(), p.watchTimes.randomDuration())
		defer cancel()
		r = r.WithContext(ctx)
	}
	http.StripPrefix(prefix, p.handler).ServeHTTP(w, r)
}

// redirectToPage redirects a browser to the page of the given namespaces.
func (p *page) redirectToPage(w http.ResponseWriter, r *http.Request) {
	namespaces := slices.Concat(naming.Map(r.URL.Query()["namespace"],
		func(names string) []string { return strings.Split(names, ",") })...)
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	if err := validateNamespaces(namespaces); err != nil {
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

func validateNamespaces(names []string) error {
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
