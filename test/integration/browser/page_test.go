package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/serving/web"
	"github.com/crdcache/crdcache/test/testcluster"
)

const workloadsPage = "#/type?id=workloads.demo.crdcache.dev%2Fv1"

func patch(t *testing.T, cluster *testcluster.Cluster, name, body string) {
	t.Helper()
	if _, err := cluster.Client().Resource(workloads).Namespace("payments").Patch(context.Background(), name,
		types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestTour visits all pages over the objects of testdata, with the keyboard where possible.
func TestTour(t *testing.T) {
	cluster := newCluster(t, 0)
	b := openTab(t, servePage(t, cluster.Config(), platformConfig(t), secrets).loginLink(), 1280, 800)

	b.awaitText(".connection", "Live")
	b.awaitText("[aria-label='Needs attention']", "Ready is False")
	b.screenshot("overview")
	b.press("g", "t")
	b.awaitText(".grid-row", "workloads.demo.crdcache.dev/v1")
	b.awaitText(".figures", "5 types")
	b.screenshot("types")
	b.press("/", "w", "o", "r", "k")
	b.await(`document.querySelector("[role=grid]").getAttribute("aria-rowcount") === "2"`)
	b.press(kb.Enter, kb.Enter)

	b.awaitText("h1", "Workload")
	b.awaitText(".grid-row", "ledger")
	b.awaitText(".index", "environment")
	b.awaitText("[aria-label='Dangling references']", "nowhere")
	b.screenshot("type")
	b.press("/")
	b.runActions(chromedp.SendKeys("[role=combobox]", "team=led"))
	b.awaitText("[role=option]", "ledger")
	b.press(kb.ArrowDown)
	b.awaitText("[role=option][aria-selected=true]", "ledger")
	b.press(kb.Enter)
	b.await(`document.querySelector("[role=combobox]").value === "team=ledger"`)
	b.press(kb.Enter)
	b.awaitText(".plan summary", "3 of 19 objects")
	b.runActions(chromedp.Click(".plan summary"))
	b.awaitText(".plan li", "Starts with team=ledger (3 objects)")
	b.runActions(chromedp.SetValue("[role=combobox]", "taem=x"), chromedp.SendKeys("[role=combobox]", kb.End))
	b.permitError("400 (Bad Request)")
	b.press(kb.Enter)
	b.awaitText(".query-error mark", "taem=x")
	b.runActions(chromedp.Evaluate(`document.querySelector("[role=combobox]").value = ""; true`, nil),
		chromedp.Click(".bars li:first-child button"))
	b.await(`document.querySelector("[role=combobox]").value.startsWith("namespace=")`)

	b.goTo("#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger")
	b.awaitText(".yaml li", "artifactBytes: 9007199254740993")
	b.awaitText(".conditions", "Ready")
	b.awaitText(".graph .node", "production-eu")
	for replicas := 400; !strings.Contains(b.text(".changes"), ".spec.replicas"); replicas++ {
		patch(t, cluster, "ledger", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		if b.ctx.Err() != nil {
			t.Fatal(b.ctx.Err())
		}
	}
	b.awaitText(".changes ins", "4")
	b.awaitText(".yaml li", "replicas: 4")
	b.screenshot("object")
	b.runActions(chromedp.Click(".graph .node a"))
	b.awaitText("h1", "Environment")
	b.awaitText(".trail", "payments/ledger")
	b.awaitText(".graph .node", "payments/ledger")

	b.runActions(chromedp.Evaluate("document.activeElement.blur(); true", nil))
	b.press("g", "c")
	b.awaitText(".log", "No changes yet")
	// The page does not show when the stream of all changes has started, so objects change until a change
	// appears.
	for tick := 0; !strings.Contains(b.text(".log"), "payments/ledger"); tick++ {
		patch(t, cluster, "ledger", fmt.Sprintf(`{"metadata":{"annotations":{"tick":"%d"}}}`, tick))
		if b.ctx.Err() != nil {
			t.Fatal(b.ctx.Err())
		}
	}
	b.press("p")
	b.awaitText("[role=status]", "Paused")
	b.screenshot("changes")
}

// TestClusterSwitch opens the same page of another cluster.
func TestClusterSwitch(t *testing.T) {
	one := servePage(t, newCluster(t, 0).Config(), platformConfig(t))
	two := servePage(t, newCluster(t, 3).Config(), platformConfig(t))
	handler, err := web.NewHandler(web.Source{Title: "one", Factory: one.factory},
		web.Options{Clusters: []web.Source{{Title: "arn:eks/two", Factory: two.factory}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(handler.Close)
	b := openTab(t, server.URL+handler.Login(), 1280, 800)
	b.goTo(workloadsPage + "&sort=name")
	b.awaitText(".grid-row", "cart")
	b.await(`document.getElementById("cluster")?.value === "one"`)
	// RunResponse waits for the new page.
	if _, err := chromedp.RunResponse(b.ctx, chromedp.Evaluate(`{
  const choice = document.getElementById("cluster");
  choice.value = "arn:eks/two";
  choice.dispatchEvent(new Event("change"));
} true`, nil)); err != nil {
		t.Fatal(err)
	}
	b.await(`location.pathname === "/clusters/arn%3Aeks%2Ftwo/" && document.getElementById("cluster")?.value === "arn:eks/two"`)
	b.awaitText(".grid-row", "many-00000")
}

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
