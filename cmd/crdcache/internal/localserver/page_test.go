//go:build unix

package localserver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestOpenPageIsActive verifies that an open stream of the page counts as an active request.
func TestOpenPageIsActive(t *testing.T) {
	polling := func(s *Server) int {
		s.options.ActiveRequests.mu.Lock()
		defer s.options.ActiveRequests.mu.Unlock()
		return s.options.ActiveRequests.mu.active
	}
	s := &Server{options: Options{ActiveRequests: NewActiveRequests(time.Hour)}}
	during := -1
	s.options.Page = &Page{Handler: http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		during = polling(s)
	})}
	s.pageServer(t.Context()).Handler.ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodGet, "/", nil))
	if during != 1 || polling(s) != 0 {
		t.Errorf("%d active requests during the stream and %d afterwards, want 1 and 0", during, polling(s))
	}
}

// TestPageEndsWithServer verifies that the page is served while the server runs, and that its link is
// available through the socket.
func TestPageEndsWithServer(t *testing.T) {
	shortDir(t)
	config := &rest.Config{Host: "https://a"}
	id, _, err := Identity(t.Context(), config)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := "http://" + listener.Addr().String() + "/"
	options := Options{
		Dir: SocketDirFor(id), Info: func() Info { return Info{Identity: id} },
		Handler: http.NotFoundHandler(),
		Page: &Page{Listener: listener, Handler: http.NotFoundHandler(),
			LoginLink: func() string { return address }},
	}
	listening, serveErr := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { serveErr <- Serve(ctx, options, func() { close(listening) }) }() // ends with Stop
	<-listening
	client, err := NewClient(t.Context(), config)
	must(t, err)
	link, err := client.LoginLink(t.Context())
	if err != nil || link != address {
		t.Fatalf("the link is %q, %v, want the address of the page", link, err)
	}
	answer, err := http.Get(link)
	if err != nil || answer.StatusCode != http.StatusNotFound {
		t.Fatalf("GET of the page = %v, %v, want 404 from its handler", answer, err)
	}
	answer.Body.Close()
	if _, err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-serveErr; err != nil {
		t.Error(err)
	}
	if answer, err := http.Get(link); err == nil {
		answer.Body.Close()
		t.Error("the page responds after the server has ended")
	}
}
