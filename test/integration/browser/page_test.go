package browser_test

import (
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
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

// axe is axe-core 4.11.0, https://github.com/dequelabs/axe-core, under the Mozilla Public License 2.0. It is
// used only by this test.
//
//go:embed testdata/axe.min.js.gz
var axe string

// pages are the pictured pages, with a selector and a text to wait for.
var pages = []struct{ name, hash, selector, text string }{
	{"overview", "#/", "[aria-label='Needs attention']", "Ready is False"},
	{"types", "#/types", ".grid-row", "workloads"},
	{"type", workloadsPage, ".grid-row", "ledger"},
	{"object", "#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger", ".graph .node",
		"production-eu"},
	{"graph", "#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger&view=graph", ".graph .node",
		"production-eu"},
	{"changes", "#/changes", ".log", "No changes yet"},
}

// TestPictures pictures all pages in both themes at three widths. No page may be wider than the screen, and
// axe-core may find no serious violation of WCAG.
func TestPictures(t *testing.T) {
	unpacked, err := gzip.NewReader(strings.NewReader(axe))
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	page := servePage(t, newCluster(t, 0).Config(), platformConfig(t), secrets)
	b := openTab(t, page.loginLink(), 1280, 800)
	b.awaitText(".connection", "Live")
	b.runActions(chromedp.Evaluate(string(script)+"; true", nil))
	for _, theme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{390, 844}, {1024, 768}, {1600, 1000}} {
			b.runActions(emulation.SetDeviceMetricsOverride(size[0], size[1], 1, size[0] < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
			for _, p := range pages {
				b.goTo(p.hash)
				b.awaitText(p.selector, p.text)
				b.checkPage(fmt.Sprint(p.name, "-", theme, "-", size[0]), size[0])
			}
			b.search("ledger")
			b.awaitText("[role=option]", "payments/ledger")
			b.checkPage(fmt.Sprint("search-", theme, "-", size[0]), size[0])
			b.press(kb.Escape)
		}
		if background, want := evaluate[string](b, "getComputedStyle(document.body).backgroundColor"),
			map[string]string{"light": "rgb(247, 248, 248)", "dark": "rgb(19, 22, 24)"}[theme]; background != want {
			t.Errorf("the background of the %s theme is %s, want %s", theme, background, want)
		}
	}
}

// checkPage pictures the page and looks for violations.
func (b *tab) checkPage(name string, width int64) {
	b.Helper()
	b.screenshot(name)
	if wide := evaluate[int64](b, "document.documentElement.scrollWidth"); wide > width {
		b.Errorf("%s is %d pixels wide, want at most %d", name, wide, width)
	}
	b.checkAxe(name)
}

// axeScript runs axe-core with the rules of WCAG 2.1 A and AA, and leaves the serious violations.
const axeScript = `window.violations = undefined;
axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations"]}).then(({violations: found}) => {
  violations = found.filter(({impact}) => impact === "serious" || impact === "critical").map(({id, help, nodes}) => ({id, help, nodes: nodes.slice(0, 3).map((node) => node.html + " " + node.failureSummary)}));
});
true`

// checkAxe reports the serious findings of axe-core.
func (b *tab) checkAxe(name string) {
	b.Helper()
	b.runActions(chromedp.Evaluate(axeScript, nil))
	b.await("violations")
	var found []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(evaluate[string](b, "JSON.stringify(violations)")), &found); err != nil {
		b.Fatal(err)
	}
	for _, v := range found {
		b.Errorf("%s: axe-core: %s (%s): %s", name, v.Help, v.ID, strings.Join(v.Nodes, "\n"))
	}
}
