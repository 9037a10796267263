package browser_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/testcluster"
)

const (
	manyRows, manyRowsTypes = 50_000, 254
	// maxRowElements limits the row elements in a window of 800 pixels. maxRowRequests limits the concurrent
	// requests for rows.
	maxRowElements, maxRowRequests = 60, 2
	// maxPageMemory limits the memory of the page's scripts after scrolling through all rows. They use about
	// 4 MB.
	maxPageMemory = 32 << 20
)

// countRequestsScript counts all requests for rows, and the maximum of concurrent ones.
const countRequestsScript = `{
  const ask = window.fetch;
  window.rows = { now: 0, most: 0, all: 0 };
  window.fetch = async (address, ...more) => {
    if (!address.startsWith("api/rows")) return ask(address, ...more);
    rows.all++;
    rows.most = Math.max(rows.most, ++rows.now);
    try { return await ask(address, ...more); } finally { rows.now--; }
  };
}
true`

// scrollScript scrolls from the first row to the last, 400 rows per frame.
const scrollScript = `(async () => {
  const grid = document.querySelector(".grid");
  window.frames_ = [];
  let before = performance.now();
  while (grid.scrollTop + grid.clientHeight < grid.scrollHeight - 1) {
    grid.scrollTop += 32 * (frames_.length % 2 ? 400 : 3);
    const now = await new Promise(requestAnimationFrame);
    frames_.push(now - before);
    before = now;
  }
})()`

// reportScript returns a measurement of the page, which the test prints and does not judge.
const reportScript = `(async () => {
  const time = async (text) => {
    const begin = performance.now(), found = await (await fetch("api/search?all=1&text=" + text)).json();
    return Math.round(performance.now() - begin) + " ms for " + text + " (" + found.searched + " objects)";
  };
  const sorted = frames_.toSorted((a, b) => a - b), at = (part) => sorted[Math.floor((sorted.length - 1) * part)].toFixed(1);
  return "interactive after " + Math.round(interactive) + " ms; " + sorted.length + " frames of scrolling: median " + at(0.5) + " ms, p95 " + at(0.95) + " ms, longest " + at(1) +
    " ms; search: " + await time("many-49999") + ", " + await time("no-such-text");
})()`

// TestManyRows scrolls through, sorts and searches a table. Only visible rows may be elements.
func TestManyRows(t *testing.T) {
	types, all := emptyTypes(manyRowsTypes)
	page := servePage(t, newCluster(t, manyRows, types...).Config(), platformConfig(t), all...)
	b := openTab(t, page.loginLink(), 1280, 800)
	// The search for dangling references can take more than ten seconds on a busy machine.
	b.permitError("504 (Gateway Timeout)")
	b.awaitText(".connection", "Live")
	b.goTo(workloadsPage + "&sort=name")
	b.await(fmt.Sprintf(`Number(document.querySelector("[role=grid]").getAttribute("aria-rowcount")) > %d`,
		manyRows))
	b.awaitText(".grid-row", "many-00000")
	b.runActions(chromedp.Reload())
	b.awaitText(".grid-row", "many-00000")
	b.runActions(chromedp.Evaluate("window.interactive = performance.now(); true", nil))
	b.runActions(chromedp.Evaluate(`document.querySelector(".grid").scrollTop = 32 * 25000; true`, nil))
	b.awaitText(".grid-row", "many-250")
	b.runActions(chromedp.Focus("[role=grid]"))
	b.press(kb.Home)
	b.await(`document.querySelector(".grid").scrollTop === 0`)

	b.runActions(chromedp.Evaluate(countRequestsScript, nil))
	b.runActions(chromedp.Evaluate(scrollScript, nil,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	b.awaitText(".grid-row", "transcoder")
	var report string
	b.runActions(chromedp.Evaluate(reportScript, &report,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	t.Log(report)
	if most := evaluate[int](b, "rows.most"); most > maxRowRequests {
		t.Errorf("%d of %d requests for rows ran at once, want at most %d", most,
			evaluate[int](b, "rows.all"), maxRowRequests)
	}
	b.press(kb.Home)
	b.await(`document.querySelector(".grid").scrollTop === 0`)
	b.awaitText(".grid-row", "many-00000")
	b.press(kb.End)
	b.awaitText(".grid-row.active", "transcoder")
	if n := evaluate[int](b, `document.querySelectorAll(".grid-row").length`); n > maxRowElements {
		t.Errorf("%d rows are elements, want at most %d", n, maxRowElements)
	}
	b.runActions(chromedp.ActionFunc(heapprofiler.CollectGarbage().Do))
	if used := evaluate[float64](b, "performance.memory.usedJSHeapSize"); used > maxPageMemory {
		t.Errorf("the page uses %.0f bytes, want at most %d", used, maxPageMemory)
	}

	b.runActions(chromedp.Click("//div[@role='columnheader']//button[text()='Replicas']", chromedp.BySearch))
	b.await(`document.querySelector("[role=columnheader][aria-sort=ascending]")?.innerText.includes("Replicas")`)
	b.awaitText(".grid-row", "many-00112") // without replicas, like many-00000
	b.goTo(workloadsPage + "&query=team%3Dteam-3")
	b.awaitText(".plan summary", "7,143 of ")
}

// TestTabsShareAStream opens more tabs than a browser's limit of HTTP/1.1 connections. All visible tabs get
// changes through one stream, whichever tab closes. Hidden tabs have no stream.
func TestTabsShareAStream(t *testing.T) {
	cluster := newCluster(t, 0)
	s := servePage(t, cluster.Config(), platformConfig(t))
	var streams atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			streams.Add(1)
			defer streams.Add(-1)
		}
		s.handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(s.handler.Close)
	first := openTab(t, server.URL+s.handler.Login(), 1000, 700)
	first.awaitText(".connection", "Live")
	object := "#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger"
	tabs := []*tab{first}
	var closeTab []func()
	for i := range 7 {
		ctx, cancel := chromedp.NewContext(first.ctx)
		closeTab = append(closeTab, cancel)
		b := &tab{T: t, ctx: ctx, origins: []string{server.URL + "/"}}
		place := []string{"#/changes", object, "#/", workloadsPage}[i%4]
		b.runActions(chromedp.Navigate(server.URL + "/" + place))
		b.awaitText(".connection", "Live")
		tabs = append(tabs, b)
	}
	number := 0
	// A headless browser shows one tab at a time. A second window would always be visible.
	const visibility = `Object.defineProperty(document, "hidden", { configurable: true, get: () => %v }); document.dispatchEvent(new Event("visibilitychange")); true`
	setVisible := func(b *tab, visible bool) {
		b.runActions(chromedp.Evaluate(fmt.Sprintf(visibility, !visible), nil))
	}
	for _, b := range tabs {
		setVisible(b, true)
	}
	awaitChange := func(of ...*tab) {
		t.Helper()
		for _, b := range of {
			const changeCount = `[...document.querySelectorAll(".changes li")].filter((e) => e.innerText.includes(".spec.replicas")).length`
			shown := chromedp.Poll(fmt.Sprintf("%s > %d", changeCount, evaluate[int](b, changeCount)), nil,
				chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(time.Second))
			// The first change can precede the connection of another tab.
			for err := error(chromedp.ErrPollingTimeout); err != nil; err = chromedp.Run(b.ctx, shown) {
				if number++; number > 100 || !errors.Is(err, chromedp.ErrPollingTimeout) {
					b.screenshot("failure")
					t.Fatalf("timed out waiting for a change: %v: %s", err, b.text("body"))
				}
				patch(t, cluster, "ledger", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1000+number))
			}
		}
	}
	awaitStreams := func(want int32) {
		t.Helper()
		harness.Eventually(t, func(context.Context) error {
			if got := streams.Load(); got != want {
				return fmt.Errorf("%d streams, want %d", got, want)
			}
			return nil
		})
	}
	awaitChange(tabs[2], tabs[6])
	for _, b := range tabs {
		b.awaitText(".connection", "Live")
	}
	awaitStreams(1)

	// Hide the first tab, which has the connection, and close two others.
	setVisible(first, false)
	closeTab[0]()
	closeTab[3]()
	awaitChange(tabs[2], tabs[6])
	awaitStreams(1)
	for _, b := range []*tab{tabs[2], tabs[3], tabs[5], tabs[6], tabs[7]} {
		b.awaitText(".connection", "Live")
		setVisible(b, false)
	}
	awaitStreams(0)
	setVisible(tabs[2], true)
	tabs[2].awaitText(".changes", "are missing, because this page was not connected")
	awaitChange(tabs[2])
}

// TestStates verifies that the page of changes shows that a type is synced, and why another one is degraded.
func TestStates(t *testing.T) {
	cluster := newCluster(t, 0)
	cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: "services"},
		Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not today")})
	s := servePage(t, cluster.Config(), platformConfig(t))
	b := openTab(t, s.loginLink()+"#/changes", 1000, 700)
	b.awaitText(".connection", "Live")
	b.awaitText(".log", "No changes yet")
	for _, resource := range []string{"configmaps", "services"} {
		if _, err := s.factory.ForResource(schema.GroupVersionResource{Version: "v1",
			Resource: resource}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	const configMaps, services = "configmaps/v1", "services/v1"
	shownIn := func(op, resource string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".log li")].some((e) => e.checkVisibility() && e.innerText.includes(%q) && e.innerText.includes(%q))`, op, resource)
	}
	b.await(shownIn("● synced", configMaps))
	b.await(shownIn("▲ degraded", services))
	b.await(shownIn("Forbidden", services))
	b.screenshot("states")
	b.runActions(chromedp.Click("//button[text()='types']", chromedp.BySearch))
	b.await("!" + shownIn("", ""))
	b.runActions(chromedp.Click("//button[text()='types']", chromedp.BySearch))
	b.await(shownIn("● synced", configMaps))
	b.runActions(chromedp.SendKeys("[type=search]", "degraded"))
	b.await("!" + shownIn("", configMaps))
	b.await(shownIn("▲ degraded", services))
}
