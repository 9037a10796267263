package controllerruntime

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crdcache/crdcache/serving/readapi"
)

// NewCacheFrom returns a cache.NewCacheFunc. Its caches list and watch some types from another server of the
// same cluster, such as crdcached, and all other types from the cluster. cacheServer has its URL and
// credentials; the token of a pod is valid for both.
//
// types are names such as "certificates.cert-manager.io" and patterns such as "*.example.com"; "pods" is in
// the core group. Name only types that the server caches: informers of others do not sync. The returned
// function fails if a name is malformed, or if cacheOptions.Factory is set, which has a client of its own.
func NewCacheFrom(cacheServer *rest.Config, types []string, cacheOptions Options) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		if cacheOptions.Factory != nil {
			return nil, errors.New("controllerruntime: Options.Factory: a shared factory has a client of its own; use NewCacheFunc")
		}
		router, err := newRouter(config, cacheServer, types)
		if err != nil {
			return nil, fmt.Errorf("controllerruntime: %w", err)
		}
		if config, options, err = withDefaults(config, options); err != nil {
			return nil, err
		}
		client := *options.HTTPClient
		router.cluster, client.Transport = client.Transport, router
		router.cluster = cmp.Or(router.cluster, http.DefaultTransport)
		options.HTTPClient = &client
		return NewCacheFunc(cacheOptions)(config, options)
	}
}

// router sends lists and watches of some types to a caching server, and all other requests to the cluster.
type router struct {
	types                []string
	cluster, cacheServer http.RoundTripper
	// prefix is the path of the cluster's URL; baseURL is the URL of the caching server.
	prefix  string
	baseURL *url.URL
}

func newRouter(config, cacheServer *rest.Config, types []string) (*router, error) {
	if cacheServer == nil || len(types) == 0 {
		return nil, errors.New(`NewCacheFrom: set the REST config of the caching server, and name types that it caches, such as "certificates.cert-manager.io"`)
	}
	for _, name := range types {
		if name == "" || strings.ContainsAny(name, `/\ ?[`) || strings.ToLower(name) != name {
			return nil, fmt.Errorf(`NewCacheFrom: %q is not a resource name; write its plural and group, such as "certificates.cert-manager.io"`, name)
		}
	}
	cluster, _, err := rest.DefaultServerUrlFor(config)
	base, _, baseErr := rest.DefaultServerUrlFor(cacheServer)
	if err := errors.Join(err, baseErr); err != nil {
		return nil, fmt.Errorf("NewCacheFrom: read the URLs of the cluster and the caching server: %w", err)
	}
	client, err := rest.HTTPClientFor(cacheServer)
	if err != nil {
		return nil, fmt.Errorf("NewCacheFrom: make a client for %s: %w", base, err)
	}
	return &router{types: slices.Clone(types), prefix: strings.TrimSuffix(cluster.Path, "/"), baseURL: base,
		cacheServer: cmp.Or(client.Transport, http.DefaultTransport)}, nil
}

func (r *router) RoundTrip(request *http.Request) (*http.Response, error) {
	apiPath, ok := strings.CutPrefix(request.URL.Path, r.prefix)
	if !ok {
		return r.cluster.RoundTrip(request)
	}
	copied := request.Clone(request.Context())
	copied.URL.Path, copied.URL.RawPath = apiPath, ""
	target, ok := readapi.ParseRequest(copied)
	if !ok || !slices.Contains([]string{"list", "watch", "watch-list"}, target.Verb) ||
		!r.isCached(target.GVR.GroupResource()) {
		return r.cluster.RoundTrip(request)
	}
	copied.URL.Scheme, copied.URL.Host, copied.Host = r.baseURL.Scheme, r.baseURL.Host, ""
	copied.URL.Path = path.Join("/", r.baseURL.Path, apiPath)
	return r.cacheServer.RoundTrip(copied)
}

// CloseIdleConnections closes the idle connections to both servers.
func (r *router) CloseIdleConnections() {
	utilnet.CloseIdleConnectionsFor(r.cluster)
	utilnet.CloseIdleConnectionsFor(r.cacheServer)
}

func (r *router) isCached(gr schema.GroupResource) bool {
	return slices.ContainsFunc(r.types, func(name string) bool {
		ok, _ := path.Match(name, gr.String()) // newRouter has validated the patterns
		return ok
	})
}
