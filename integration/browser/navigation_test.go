package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// search opens the palette and types a text.
func (b *tab) search(text string) {
	b.Helper()
	b.run(input.DispatchKeyEvent(input.KeyDown).WithKey("k").WithCode("KeyK").WithModifiers(input.ModifierCtrl))
	b.await(`document.querySelector("dialog.palette[open]")`)
	b.key(strings.Split(text, "")...)
}

// finds waits for a result of the search. On a busy machine, the search of contents ends early, and offers to
// continue.
func (b *tab) finds(text string) {
	b.Helper()
	b.await(fmt.Sprintf(`(() => {
  const options = [...document.querySelectorAll("[role=option]")];
  if (options.some((e) => e.innerText.includes(%q))) return true;
  options.find((e) => e.innerText.includes("Search the other objects"))?.click();
  return false;
})()`, text))
}

// TestNavigation finds an object by its name and by its value, switches the namespace, and goes back.
func TestNavigation(t *testing.T) {
	b := open(t, serve(t, inMemory(t, 2000).Config(), platform(t)).link(), 1280, 800)
	b.has(".connection", "Live")
	b.search("many-01234")
	b.has("[role=option]", "team-02/many-01234")
	b.key(kb.Enter)
	b.has("h1", "many-01234")
	b.search("9007199254740993")
	b.finds(".spec.artifactBytes")
	b.search("")
	b.key(kb.Escape)
	b.await(`!document.querySelector("dialog[open]")`)

	b.goTo(workloadsPlace + "&sort=name")
	b.has(".grid-row", "cart")
	b.run(chromedp.Evaluate(`document.querySelector(".grid").scrollTop = 32 * 1500; true`, nil))
	b.await(`[...document.querySelectorAll(".grid-row:not([hidden]) a")].some((a) => a.innerText.startsWith("many-01"))`)
	// The text is selected by the row that the test opens.
	b.run(chromedp.Evaluate(`{
  const row = document.querySelector("[aria-rowindex='1505']");
  window.opened = row.querySelector("a").innerText;
  row.click();
} true`, nil))
	b.has("h1", "many-01")
	b.run(chromedp.Evaluate(`history.back(); true`, nil))
	b.await(`document.querySelector(".grid-row.active a")?.innerText === opened`)
	if top := value[int](b, `document.querySelector(".grid").scrollTop`); top != 32*1500 {
		t.Errorf("Back scrolls to %d, want the position before", top)
	}

	b.key("n")
	b.has("[role=option]", "media")
	b.key(strings.Split("media", "")...)
	b.key(kb.Enter)
	b.has("#namespace", "media")
	b.has(".plan summary", "5 of 2,019 objects")
	b.goTo("#/")
	b.await(`location.hash.endsWith("ns=media")`)
	b.run(chromedp.Reload())
	b.has("#namespace", "media")
	b.has(".tile", "9")
	b.run(chromedp.Evaluate(`history.go(-2); true`, nil))
	b.has(".plan summary", "2,019 of 2,019 objects")
	b.has("#namespace", "All namespaces")
}

// TestTools chooses and exports columns, saves a query, and changes the theme, with the keyboard.
func TestTools(t *testing.T) {
	b := open(t, serve(t, inMemory(t, 0).Config(), platform(t)).link(), 1280, 800)
	b.has(".connection", "Live")
	b.goTo(workloadsPlace + "&query=namespace%3Dmedia")
	b.has(".grid-row", "transcoder")
	b.key("c")
	b.run(chromedp.Click(`//label[contains(., "Tier")]`, chromedp.BySearch))
	const headers = `[...document.querySelectorAll("[role=columnheader]")].map((e) => e.innerText).join()`
	b.await("!" + headers + `.includes("Tier")`)
	b.key(kb.Escape)
	b.run(chromedp.Reload())
	b.has(".grid-row", "transcoder")
	if got := value[string](b, headers); strings.Contains(got, "Tier") || !strings.Contains(got, "Environment") {
		t.Errorf("the columns are %s, want those that were chosen", got)
	}
	const fetchExport = `window.exported = undefined; fetch(document.querySelector(".exports a").href).then((r) => r.text()).then((text) => {exported = text;}); true`
	b.run(chromedp.Evaluate(fetchExport, nil))
	b.await("exported")
	if csv := value[string](b, "exported"); !strings.HasPrefix(csv, "Namespace,Name,Environment,Replicas,") ||
		strings.Count(csv, "\n") != 6 || !strings.Contains(csv, "media,transcoder,") {
		t.Errorf("CSV %s", csv)
	}
	b.key("s")
	b.await(`document.activeElement.matches(".menu-box input")`)
	b.key(strings.Split("all media", "")...)
	b.key(kb.Enter)
	b.has("#saved a", "all media")
	b.goTo("#/")
	b.run(chromedp.Click("#saved a"))
	b.has(".grid-row", "transcoder")
	b.run(chromedp.Evaluate("document.activeElement.blur(); true", nil))
	b.key("d")
	b.await(`document.documentElement.dataset.theme === "dark"`)
	b.run(chromedp.Reload())
	b.await(`document.documentElement.dataset.theme === "dark" && getComputedStyle(document.body).backgroundColor === "rgb(19, 22, 24)"`)
}

// TestGraph expands nodes of a graph.
func TestGraph(t *testing.T) {
	b := open(t, serve(t, inMemory(t, 0).Config(), platform(t)).link()+
		"#/object?type=environments.demo.crdcache.dev%2Fv1&key=production-eu", 1280, 800)
	b.has(".graph .node", "payments/ledger")
	b.key("v")
	b.has(".graph.deep .node", "payments/ledger")
	focused := func(node string) { // has a visible focus
		t.Helper()
		b.await(fmt.Sprintf(`document.activeElement.closest(".node")?.textContent.includes(%q) &&
			document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineWidth === "2px"`, node))
	}
	focused("production-eu")
	b.key(kb.ArrowRight)
	for n := 0; n < 20 && !value[bool](b, `document.activeElement.title === "Workload payments/ledger"`); n++ {
		b.key(kb.ArrowDown)
	}
	b.key(kb.ArrowRight) // expands it
	b.has(".graph.deep [data-depth='1'] .node", "payments/ledger-4.18.1")
	focused("payments/ledger")
	b.key(kb.ArrowRight)
	focused("payments/ledger-4.18.1")
	b.key(kb.ArrowLeft)
	focused("payments/ledger")
	b.key(kb.ArrowLeft)
	focused("production-eu")
	b.run(chromedp.Evaluate(`document.querySelector(".graph.deep a[title='Workload payments/ledger']").click(); true`, nil))
	b.has("h1", "Workload payments/ledger")
	b.has(".graph.deep .node", "production-eu")
	b.has(".trail", "production-eu")
}

// TestHostileObject shows an object whose texts try to change the page.
func TestHostileObject(t *testing.T) {
	cluster := inMemory(t, 0)
	const attack = `"><img src=x onerror="document.title='attacked'"><script>document.title='attacked'</script>`
	object := workload("hostile", attack, 1)
	object["spec"].(map[string]any)["image"] = "abc\u202Edcb\u200B"
	object["spec"].(map[string]any)["env"] = map[string]any{"BIG": strings.Repeat("0123456789", 100_000), attack: attack}
	object["status"] = map[string]any{"conditions": []any{map[string]any{"type": attack, "status": "False",
		"reason": "\u2066" + attack, "message": attack, "lastTransitionTime": attack}}}
	load(t, cluster, object)
	b := open(t, serve(t, cluster.Config(), platform(t)).link()+
		"#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fhostile", 1280, 800)
	b.has(".conditions", "onerror")
	b.has(".conditions .hidden-character", "U+2066")
	b.has(".yaml li", `abc\u202edcb\u200b`)
	b.goTo("#/")
	b.has("[aria-label=Conditions]", "onerror")
	b.goTo(workloadsPlace + "&query=" + "namespace%3Dpayments&columns=Image,Environment,Ready")
	b.has(".grid-row", "hostile")
	b.has(".grid-row .hidden-character", "U+202E")
	b.search("onerror")
	b.finds("onerror")
	if title := value[string](b, "document.title"); strings.Contains(title, "attacked") {
		t.Errorf("the title is %s", title)
	}
}

// TestTypeVanishes removes a type while its table is shown.
func TestTypeVanishes(t *testing.T) {
	s := serve(t, inMemory(t, 0).Config(), platform(t))
	handle, err := s.factory.Acquire(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := open(t, s.link()+"#/type?id=namespaces%2Fv1", 1280, 800)
	b.has(".grid-row", "payments")
	handle.Release()
	b.expect("404 (Not Found)")
	b.has("main", "This type is not cached any more")
	b.has(".grid-row", "payments")
}
