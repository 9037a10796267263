package browser_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
