package browser_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// stoppableServer is a page with a server that can be stopped.
type stoppableServer struct{ handler atomic.Pointer[http.Handler] }

func (a *stoppableServer) replaceHandler(handler http.Handler) { a.handler.Store(&handler) }

func (a *stoppableServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*a.handler.Load()).ServeHTTP(w, r)
}

var abortRequest = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

// TestConnectionLost stops the server and starts it again: first the same server, then a new server, which
// does not accept the browser's cookie.
func TestConnectionLost(t *testing.T) {
	s := serve(t, inMemory(t, 0).Config(), platform(t))
	page := &stoppableServer{}
	page.replaceHandler(s.handler)
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	t.Cleanup(s.handler.Close)
	b := open(t, server.URL+s.handler.Login()+"#/types", 1000, 700)
	b.expect("net::ERR_")
	b.expect("401 (Unauthorized)")
	b.has(".connection", "Live")
	b.has(".grid-row", "workloads")

	page.replaceHandler(abortRequest)
	server.CloseClientConnections()
	b.has(".connection", "Connection lost")
	b.has("#banner", "crdcache does not answer. The page shows the state at")
	b.has(".grid-row", "workloads")
	b.picture("lost")
	page.replaceHandler(s.handler)
	// The page can be faster and reconnect on its own.
	b.run(chromedp.Evaluate(`document.querySelector("#banner button")?.click(); true`, nil))
	b.has(".connection", "Live")
	b.await(`document.getElementById("banner").hidden`)

	page.replaceHandler(serve(t, inMemory(t, 0).Config(), platform(t)).handler)
	server.CloseClientConnections()
	b.has("#banner", "this browser is not logged in")
}
