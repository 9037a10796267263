package cli

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/web"
)

// webFlags are the flags of serve for the web page.
type webFlags struct {
	enabled     bool
	address     string
	showSecrets bool
	cmd         *cobra.Command
}

func (f *webFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	set := cmd.Flags()
	set.BoolVar(&f.enabled, "web", false,
		"Serve a web page on this machine. Its link is printed to stderr.")
	set.StringVar(&f.address, "web-address", "127.0.0.1:0",
		"Loopback address of the page. Port 0 means a free port.")
	set.BoolVar(&f.showSecrets, "show-secrets", false, "Show the values of Secrets on the page.")
	// it fails only for unknown flags
	_ = cmd.RegisterFlagCompletionFunc("web-address", cobra.NoFileCompletions)
}

// webOptions are the validated flags for the web page.
type webOptions struct {
	address     netip.AddrPort
	showSecrets bool
}

// toOptions returns nil without --web.
func (f *webFlags) toOptions() (*webOptions, error) {
	for _, name := range []string{"web-address", "show-secrets"} {
		if !f.enabled && f.cmd.Flags().Changed(name) {
			return nil, exit.Usagef("--%s has no effect without --web", name)
		}
	}
	if !f.enabled {
		return nil, nil
	}
	text := f.address
	if port, ok := strings.CutPrefix(text, "localhost:"); ok {
		text = "127.0.0.1:" + port
	}
	address, err := netip.ParseAddrPort(text)
	if err != nil || !address.Addr().IsLoopback() || address.Addr().Zone() != "" {
		return nil, exit.Usagef("--web-address is %q: the page is only for this machine: use a loopback address and a port, as in 127.0.0.1:8080", f.address)
	}
	return &webOptions{address, f.showSecrets}, nil
}

// page is the web page of a cacheServer.
type page struct {
	handler  *web.Handler
	listener net.Listener
}

// newPage listens and creates the web page. shutdown releases its informers.
func newPage(s *cacheServer) (*page, error) {
	handler, err := web.NewHandler(s.source(), web.Options{ShowSecrets: s.web.showSecrets})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", s.web.address.String())
	if err != nil {
		handler.Close()
		return nil, fmt.Errorf("listen for the web page: %w", err)
	}
	return &page{handler, listener}, nil
}

func (p *page) local() *localserver.Page {
	return &localserver.Page{Listener: p.listener, Handler: p.handler, LoginLink: func() string {
		return "http://" + p.listener.Addr().String() + p.handler.Login()
	}}
}

func (p *page) close() {
	p.listener.Close()
	p.handler.Close()
}

// source returns the data of the page: the informers and the indexes and references of the config.
func (s *cacheServer) source() web.Source {
	resourceOf := func(
		gvr schema.GroupVersionResource) discovery.Resource { // the zero Resource matches no config
		cached, _ := s.cachedType(gvr)
		return cached.Resource
	}
	title, notice := cmp.Or(s.Target.Context, s.Target.Config.Host), ""
	if s.Target.ReadsFiles() {
		title, notice = s.Target.FilesTitle(), s.Target.FilesNotice()
	}
	return web.Source{
		Title: title, Notice: notice, Factory: s.factory, Definition: web.Definitions(s.definitions),
		Indexes: func(gvr schema.GroupVersionResource) []*indexers.Index {
			return s.Config.
				Indexes(resourceOf(gvr))
		},
		References: func(gvr schema.GroupVersionResource) []*indexers.Reference {
			return s.Config.
				References(resourceOf(gvr))
		},
	}
}
