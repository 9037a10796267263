package serve

import (
	"cmp"
	"fmt"
	"net"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/serving/web"
)

// newPage listens for the web page. It returns the page of all clusters and a function that closes it. The
// shutdown of a cluster releases the informers of the page.
func (o *verb) newPage(servers []*cacheServer) (*localserver.Page, func(), error) {
	options := web.Options{ShowSecrets: o.showSecrets}
	for _, s := range servers[1:] {
		options.Clusters = append(options.Clusters, s.pageSource())
	}
	handler, err := web.NewHandler(servers[0].pageSource(), options)
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", o.webAddrPort.String())
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

func (s *cacheServer) pageSource() web.Source {
	title, notice := cmp.Or(s.Context, s.Rest.Host), ""
	if s.ReadsFiles() {
		title, notice = s.FilesTitle(), s.FilesNotice()
	}
	return web.Source{
		Title: title, Factory: s.factory, Definition: web.Definitions(s.crdInformer),
		Notice: func() string { return cmp.Or(s.configNotice(), notice) }, Binding: s.binding,
	}
}
