package local

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Page is what a server shows to browsers. Serve and ServePage close the listener; an open page keeps a server from being idle.
type Page struct {
	Listener net.Listener
	Handler  http.Handler
	// Link returns the address that lets one browser in. It is given to whoever may ask on the socket.
	Link func() string
}

// page returns the server of the page, whose requests count as those of the socket do.
func (s *Server) page(ctx context.Context) *http.Server {
	counted := func(w http.ResponseWriter, r *http.Request) {
		s.begin()
		defer s.end()
		s.options.Page.Handler.ServeHTTP(w, r)
	}
	return &http.Server{
		Handler: http.HandlerFunc(counted), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}
