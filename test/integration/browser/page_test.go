package browser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

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
