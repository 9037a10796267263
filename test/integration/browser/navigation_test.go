package browser_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// search opens the palette and types a text.
func (b *tab) search(text string) {
	b.Helper()
	b.runActions(input.DispatchKeyEvent(input.KeyDown).WithKey("k").WithCode("KeyK").
		WithModifiers(input.ModifierCtrl))
	b.await(`document.querySelector("dialog.palette[open]")`)
	b.press(strings.Split(text, "")...)
}

// awaitResult waits for a result of the search. On a busy machine, the search of contents ends early, and
// offers to continue.
func (b *tab) awaitResult(text string) {
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
	b := openTab(t, servePage(t, newCluster(t, 2000).Config(), platformConfig(t)).loginLink(), 1280, 800)
	b.awaitText(".connection", "Live")
	b.search("many-01234")
	b.awaitText("[role=option]", "team-02/many-01234")
	b.press(kb.Enter)
	b.awaitText("h1", "many-01234")
	b.search("9007199254740993")
	b.awaitResult(".spec.artifactBytes")
	b.search("")
	b.press(kb.Escape)
	b.await(`!document.querySelector("dialog[open]")`)

	b.goTo(workloadsPage + "&sort=name")
	b.awaitText(".grid-row", "cart")
	b.runActions(chromedp.Evaluate(`document.querySelector(".grid").scrollTop = 32 * 1500; true`, nil))
	b.await(`[...document.querySelectorAll(".grid-row:not([hidden]) a")].some((a) => a.innerText.startsWith("many-01"))`)
	// The text is selected by the row that the test opens.
	b.runActions(chromedp.Evaluate(`{
  const row = document.querySelector("[aria-rowindex='1505']");
  window.opened = row.querySelector("a").innerText;
  row.click();
} true`, nil))
	b.awaitText("h1", "many-01")
	b.runActions(chromedp.Evaluate(`history.back(); true`, nil))
	b.await(`document.querySelector(".grid-row.active a")?.innerText === opened`)
	if top := evaluate[int](b, `document.querySelector(".grid").scrollTop`); top != 32*1500 {
		t.Errorf("Back scrolls to %d, want the position before", top)
	}

	b.press("n")
	b.awaitText("[role=option]", "media")
	b.press(strings.Split("media", "")...)
	b.press(kb.Enter)
	b.awaitText("#namespace", "media")
	b.awaitText(".plan summary", "5 of 2,019 objects")
	b.goTo("#/")
	b.await(`location.hash.endsWith("ns=media")`)
	b.runActions(chromedp.Reload())
	b.awaitText("#namespace", "media")
	b.awaitText(".tile", "9")
	b.runActions(chromedp.Evaluate(`history.go(-2); true`, nil))
	b.awaitText(".plan summary", "2,019 of 2,019 objects")
	b.awaitText("#namespace", "All namespaces")
}

// TestTools chooses and exports columns, saves a query, and changes the theme, with the keyboard.
func TestTools(t *testing.T) {
	b := openTab(t, servePage(t, newCluster(t, 0).Config(), platformConfig(t)).loginLink(), 1280, 800)
	b.awaitText(".connection", "Live")
	b.goTo(workloadsPage + "&query=namespace%3Dmedia")
	b.awaitText(".grid-row", "transcoder")
	b.press("c")
	b.runActions(chromedp.Click(`//label[contains(., "Tier")]`, chromedp.BySearch))
	const headers = `[...document.querySelectorAll("[role=columnheader]")].map((e) => e.innerText).join()`
	b.await("!" + headers + `.includes("Tier")`)
	b.press(kb.Escape)
	b.runActions(chromedp.Reload())
	b.awaitText(".grid-row", "transcoder")
	if got := evaluate[string](b, headers); strings.Contains(got, "Tier") ||
		!strings.Contains(got, "Environment") {
		t.Errorf("the columns are %s, want those that were chosen", got)
	}
	const fetchExport = `window.exported = undefined; fetch(document.querySelector(".exports a").href).then((r) => r.text()).then((text) => {exported = text;}); true`
	b.runActions(chromedp.Evaluate(fetchExport, nil))
	b.await("exported")
	const firstColumns = "Namespace,Name,Environment,Replicas,"
	if csv := evaluate[string](b, "exported"); !strings.HasPrefix(csv, firstColumns) ||
		strings.Count(csv, "\n") != 6 || !strings.Contains(csv, "media,transcoder,") {
		t.Errorf("CSV %s", csv)
	}
	b.press("s")
	b.await(`document.activeElement.matches(".menu-box input")`)
	b.press(strings.Split("all media", "")...)
	b.press(kb.Enter)
	b.awaitText("#saved a", "all media")
	b.goTo("#/")
	b.runActions(chromedp.Click("#saved a"))
	b.awaitText(".grid-row", "transcoder")
	b.runActions(chromedp.Evaluate("document.activeElement.blur(); true", nil))
	b.press("d")
	b.await(`document.documentElement.dataset.theme === "dark"`)
	b.runActions(chromedp.Reload())
	b.await(`document.documentElement.dataset.theme === "dark" && getComputedStyle(document.body).backgroundColor === "rgb(19, 22, 24)"`)
}

// TestGraph expands nodes of a graph.
func TestGraph(t *testing.T) {
	b := openTab(t, servePage(t, newCluster(t, 0).Config(), platformConfig(t)).loginLink()+
		"#/object?type=environments.demo.crdcache.dev%2Fv1&key=production-eu", 1280, 800)
	b.awaitText(".graph .node", "payments/ledger")
	b.press("v")
	b.awaitText(".graph.deep .node", "payments/ledger")
	focused := func(node string) { // has a visible focus
		t.Helper()
		b.await(fmt.Sprintf(`document.activeElement.closest(".node")?.textContent.includes(%q) &&
			document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineWidth === "2px"`, node))
	}
	focused("production-eu")
	b.press(kb.ArrowRight)
	const ledgerFocused = `document.activeElement.title === "Workload payments/ledger"`
	for n := 0; n < 20 && !evaluate[bool](b, ledgerFocused); n++ {
		b.press(kb.ArrowDown)
	}
	b.press(kb.ArrowRight) // expands it
	b.awaitText(".graph.deep [data-depth='1'] .node", "payments/ledger-4.18.1")
	focused("payments/ledger")
	b.press(kb.ArrowRight)
	focused("payments/ledger-4.18.1")
	b.press(kb.ArrowLeft)
	focused("payments/ledger")
	b.press(kb.ArrowLeft)
	focused("production-eu")
	b.runActions(chromedp.Evaluate(`document.querySelector(".graph.deep a[title='Workload payments/ledger']").click(); true`, nil))
	b.awaitText("h1", "Workload payments/ledger")
	b.awaitText(".graph.deep .node", "production-eu")
	b.awaitText(".trail", "production-eu")
}

// TestHostileObject shows an object whose texts try to change the page.
func TestHostileObject(t *testing.T) {
	cluster := newCluster(t, 0)
	const attack = `"><img src=x onerror="document.title='attacked'"><script>document.title='attacked'</script>`
	object := workload("hostile", attack, 1)
	object["spec"].(map[string]any)["image"] = "abc\u202Edcb\u200B"
	object["spec"].(map[string]any)["env"] = map[string]any{"BIG": strings.Repeat("0123456789", 100_000), attack: attack}
	object["status"] = map[string]any{"conditions": []any{map[string]any{"type": attack, "status": "False",
		"reason": "\u2066" + attack, "message": attack, "lastTransitionTime": attack}}}
	loadObject(t, cluster, object)
	b := openTab(t, servePage(t, cluster.Config(), platformConfig(t)).loginLink()+
		"#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fhostile", 1280, 800)
	b.awaitText(".conditions", "onerror")
	b.awaitText(".conditions .hidden-character", "U+2066")
	b.awaitText(".yaml li", `abc\u202edcb\u200b`)
	b.goTo("#/")
	b.awaitText("[aria-label=Conditions]", "onerror")
	b.goTo(workloadsPage + "&query=" + "namespace%3Dpayments&columns=Image,Environment,Ready")
	b.awaitText(".grid-row", "hostile")
	b.awaitText(".grid-row .hidden-character", "U+202E")
	b.search("onerror")
	b.awaitResult("onerror")
	if title := evaluate[string](b, "document.title"); strings.Contains(title, "attacked") {
		t.Errorf("the title is %s", title)
	}
}

// linkPattern matches the address of a page in crdcache's output.
var linkPattern = regexp.MustCompile(`http://127\.0\.0\.1:\d+/login\?token=\S+`)

// serveFiles runs crdcache serve over files until the test ends and returns a link to its page.
func serveFiles(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(harness.Crdcache(t), append([]string{"serve", "--web"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // the process may have ended
		<-drained
		_ = cmd.Wait() // the exit code is 130
	})
	lines, output := bufio.NewScanner(stderr), ""
	for lines.Scan() && linkPattern.FindString(output) == "" {
		output += lines.Text() + "\n"
		if linkPattern.FindString(output) != "" {
			break
		}
	}
	// ends with the process
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, stderr) }()
	found := linkPattern.FindString(output)
	if found == "" {
		t.Fatalf("no link in the output %s", output)
	}
	return found
}

// TestFiles shows changing files, and a snapshot of them.
func TestFiles(t *testing.T) {
	folder, scratch := t.TempDir(), t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(testdata+"/objects")); err != nil {
		t.Fatal(err)
	}
	crds, config := "--from="+testdata+"/crds", "--config="+testdata+"/indexes/platform.yaml"
	// Both servers must outlive the browser, because the browser reports lost connections as errors.
	snapshotPath := filepath.Join(t.TempDir(), "demo.snapshot")
	if out, err := exec.Command(harness.Crdcache(t), "snapshot", "save", snapshotPath, "--all", crds,
		"--from="+testdata+"/objects").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	snapshotLink := serveFiles(t, "--from="+snapshotPath, config)
	b := openTab(t, serveFiles(t, crds, "--from="+folder, config), 1280, 800)
	b.awaitText(".connection", "Live")
	b.awaitText("#notice", "Files, read on ")
	b.awaitText("#title", "crds and 1 more")
	b.awaitText("#tree", "workloads")
	b.goTo(workloadsPage)
	b.awaitText(".grid-row", "ledger")
	b.awaitText(".index", "environment")
	b.screenshot("type")
	b.goTo("#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger")
	b.awaitText(".graph .node", "production-eu")
	file := filepath.Join(folder, "20-workloads-payments.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The page does not show when the files are watched, so objects change until a change appears.
	for replicas := 40; !strings.Contains(b.text(".changes"), ".spec.replicas"); replicas++ {
		changed := bytes.Replace(text, []byte("  replicas: 6\n"),
			fmt.Appendf(nil, "  replicas: %d\n", replicas), 1)
		if bytes.Equal(changed, text) {
			t.Fatal("the file does not contain the object")
		}
		next := filepath.Join(scratch, "next")
		if err := errors.Join(os.WriteFile(next, changed, 0o600), os.Rename(next, file)); err != nil {
			t.Fatal(err)
		}
		if b.ctx.Err() != nil {
			t.Fatal(b.ctx.Err())
		}
	}
	b.visit(snapshotLink)
	b.awaitText("#notice", "It does not change.")
	b.awaitText("#title", "demo.snapshot")
	b.goTo(workloadsPage)
	b.awaitText(".grid-row", "ledger")
}
