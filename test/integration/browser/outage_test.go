package browser_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// stoppableServer serves a page with a handler that can be replaced, for example by abortRequest.
type stoppableServer struct{ handler atomic.Pointer[http.Handler] }

func (a *stoppableServer) replaceHandler(handler http.Handler) { a.handler.Store(&handler) }

func (a *stoppableServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*a.handler.Load()).ServeHTTP(w, r)
}

var abortRequest = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

// TestConnectionLost stops the server and starts it again: first the same server, then a new server, which
// does not accept the browser's cookie.
func TestConnectionLost(t *testing.T) {
	s := servePage(t, newCluster(t, 0).Config(), platformConfig(t))
	page := &stoppableServer{}
	page.replaceHandler(s.handler)
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	t.Cleanup(s.handler.Close)
	b := openTab(t, server.URL+s.handler.Login()+"#/types", 1000, 700)
	b.permitError("net::ERR_")
	b.permitError("401 (Unauthorized)")
	b.awaitText(".connection", "Live")
	b.awaitText(".grid-row", "workloads")

	page.replaceHandler(abortRequest)
	server.CloseClientConnections()
	b.awaitText(".connection", "Connection lost")
	b.awaitText("#banner", "crdcache does not answer. The page shows the state at")
	b.awaitText(".grid-row", "workloads")
	b.screenshot("lost")
	page.replaceHandler(s.handler)
	// The page can be faster and reconnect on its own.
	b.runActions(chromedp.Evaluate(`document.querySelector("#banner button")?.click(); true`, nil))
	b.awaitText(".connection", "Live")
	b.await(`document.getElementById("banner").hidden`)

	page.replaceHandler(servePage(t, newCluster(t, 0).Config(), platformConfig(t)).handler)
	server.CloseClientConnections()
	b.awaitText("#banner", "this browser is not logged in")
}
