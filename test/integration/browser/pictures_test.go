package browser_test

import (
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

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
