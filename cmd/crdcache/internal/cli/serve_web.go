package cli

import (
	"cmp"
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/web"
)

// page returns the web page of the server, which listens already, and the function that closes it. shutdown
// releases its informers.
func (s *cacheServer) page() (*localserver.Page, func(), error) {
	handler, err := web.NewHandler(s.source(), web.Options{ShowSecrets: s.showSecrets})
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", s.address.String())
	if err != nil {
		handler.Close()
		return nil, nil, fmt.Errorf("listen for the web page: %w", err)
	}
	link := func() string { return "http://" + listener.Addr().String() + handler.Login() }
	return &localserver.Page{Listener: listener, Handler: handler, LoginLink: link}, func() {
		listener.Close()
		handler.Close()
	}, nil
}

// source returns the data of the page: the informers and the indexes and references of the config.
func (s *cacheServer) source() web.Source {
	resourceOf := func(gvr schema.GroupVersionResource) discovery.Resource {
		cached, _ := s.cachedType(gvr)
		return cached.Resource // the zero Resource matches no config
	}
	title, notice := cmp.Or(s.Context, s.Rest.Host), ""
	if s.ReadsFiles() {
		title, notice = s.FilesTitle(), s.FilesNotice()
	}
	return web.Source{
		Title: title, Notice: notice, Factory: s.factory, Definition: web.Definitions(s.definitions),
		Indexes: func(gvr schema.GroupVersionResource) []*indexers.Index {
			return s.Config.Indexes(resourceOf(gvr))
		},
		References: func(gvr schema.GroupVersionResource) []*indexers.Reference {
			return s.Config.References(resourceOf(gvr))
		},
	}
}
