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

	"github.com/crdcache/crdcache/readapi/testcluster"
)

const workloadsPlace = "#/type?id=workloads.demo.crdcache.dev%2Fv1"

func patch(t *testing.T, cluster *testcluster.Cluster, name, body string) {
	t.Helper()
	if _, err := cluster.Client().Resource(workloads).Namespace("payments").Patch(context.Background(), name,
		types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestTour visits all pages over the objects of testdata, with the keyboard where possible.
func TestTour(t *testing.T) {
	cluster := inMemory(t, 0)
	b := open(t, serve(t, cluster.Config(), platform(t), secrets).link(), 1280, 800)

	b.has(".connection", "Live")
	b.has("[aria-label='Needs attention']", "Ready is False")
	b.picture("overview")
	b.key("g", "t")
	b.has(".grid-row", "workloads.demo.crdcache.dev/v1")
	b.has(".figures", "5 types")
	b.picture("types")
	b.key("/", "w", "o", "r", "k")
	b.await(`document.querySelector("[role=grid]").getAttribute("aria-rowcount") === "2"`)
	b.key(kb.Enter, kb.Enter)

	b.has("h1", "Workload")
	b.has(".grid-row", "ledger")
	b.has(".index", "environment")
	b.has("[aria-label='Dangling references']", "nowhere")
	b.picture("type")
	b.key("/")
	b.run(chromedp.SendKeys("[role=combobox]", "team=led"))
	b.has("[role=option]", "ledger")
	b.key(kb.ArrowDown)
	b.has("[role=option][aria-selected=true]", "ledger")
	b.key(kb.Enter)
	b.await(`document.querySelector("[role=combobox]").value === "team=ledger"`)
	b.key(kb.Enter)
	b.has(".plan summary", "3 of 19 objects")
	b.run(chromedp.Click(".plan summary"))
	b.has(".plan li", "Starts with team=ledger (3 objects)")
	b.run(chromedp.SetValue("[role=combobox]", "taem=x"), chromedp.SendKeys("[role=combobox]", kb.End))
	b.expect("400 (Bad Request)")
	b.key(kb.Enter)
	b.has(".query-error mark", "taem=x")
	b.run(chromedp.Evaluate(`document.querySelector("[role=combobox]").value = ""; true`, nil),
		chromedp.Click(".bars li:first-child button"))
	b.await(`document.querySelector("[role=combobox]").value.startsWith("namespace=")`)

	b.goTo("#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger")
	b.has(".yaml li", "artifactBytes: 9007199254740993")
	b.has(".conditions", "Ready")
	b.has(".graph .node", "production-eu")
	for replicas := 400; !strings.Contains(b.text(".changes"), ".spec.replicas"); replicas++ {
		patch(t, cluster, "ledger", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		if b.ctx.Err() != nil {
			t.Fatal(b.ctx.Err())
		}
	}
	b.has(".changes ins", "4")
	b.has(".yaml li", "replicas: 4")
	b.picture("object")
	b.run(chromedp.Click(".graph .node a"))
	b.has("h1", "Environment")
	b.has(".trail", "payments/ledger")
	b.has(".graph .node", "payments/ledger")

	b.run(chromedp.Evaluate("document.activeElement.blur(); true", nil))
	b.key("g", "c")
	b.has(".log", "No changes yet")
	// The page does not show when the stream of all changes has started, so objects change until a change
	// appears.
	for tick := 0; !strings.Contains(b.text(".log"), "payments/ledger"); tick++ {
		patch(t, cluster, "ledger", fmt.Sprintf(`{"metadata":{"annotations":{"tick":"%d"}}}`, tick))
		if b.ctx.Err() != nil {
			t.Fatal(b.ctx.Err())
		}
	}
	b.key("p")
	b.has("[role=status]", "Paused")
	b.picture("changes")
}

func TestSecretIsNotShown(t *testing.T) {
	b := open(t, serve(t, inMemory(t, 0).Config(), platform(t), secrets).link(), 1000, 700)
	b.has(".connection", "Live")
	b.goTo("#/object?type=secrets%2Fv1&key=default%2Fvault")
	b.has(".yaml li", "password: redacted-")
	if strings.Contains(value[string](b, "document.documentElement.outerHTML"),
		"Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5") {
		t.Error("the page contains the password")
	}
}
