package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/serving/web"
)

// accessibleElement is an element as a screen reader receives it from Chromium.
type accessibleElement struct {
	role, name string
	// properties are the set properties: focused, live, pressed, expanded and so on.
	properties map[string]string
}

// node is an element of the accessibility tree in the protocol. cdproto does not define all properties.
type node struct {
	Ignored    bool      `json:"ignored"`
	Role       nodeValue `json:"role"`
	Name       nodeValue `json:"name"`
	Properties []struct {
		Name  string    `json:"name"`
		Value nodeValue `json:"value"`
	} `json:"properties"`
}

type nodeValue struct {
	Value any `json:"value"`
}

func (v nodeValue) String() string {
	if v.Value == nil {
		return ""
	}
	return fmt.Sprint(v.Value)
}

// accessibilityTree returns the elements of the page that a screen reader receives.
func (b *tab) accessibilityTree() []accessibleElement {
	b.Helper()
	var answer struct {
		Nodes []node `json:"nodes"`
	}
	b.runActions(chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, accessibility.CommandGetFullAXTree, nil, &answer)
	}))
	var all []accessibleElement
	for _, n := range answer.Nodes {
		if n.Ignored {
			continue
		}
		s := accessibleElement{role: n.Role.String(), name: n.Name.String(), properties: map[string]string{}}
		for _, property := range n.Properties {
			s.properties[property.Name] = property.Value.String()
		}
		all = append(all, s)
	}
	return all
}

// rolesWithNames are the roles that need a name. Groups do not: a details element is a group, and its summary
// names it.
var rolesWithNames = []string{"button", "link", "textbox", "searchbox", "combobox", "grid", "region",
	"navigation",
	"complementary", "dialog", "image", "columnheader"}

// expectAccessible waits until the tree has an element with a role, a prefix of its name, and properties,
// given as alternating names and values.
func (b *tab) expectAccessible(role, name string, properties ...string) {
	b.Helper()
	var tree []accessibleElement
	for b.ctx.Err() == nil {
		tree = b.accessibilityTree()
		if slices.ContainsFunc(tree, func(s accessibleElement) bool {
			fits := s.role == role && strings.HasPrefix(s.name, name)
			for pair := range slices.Chunk(properties, 2) {
				fits = fits && s.properties[pair[0]] == pair[1]
			}
			return fits
		}) {
			return
		}
	}
	b.Fatalf("timed out waiting for %s %q with %q in %v", role, name, properties, tree)
}

// expectNoFindings verifies that axe-core has no serious or critical finding in a state of the page.
func (b *tab) expectNoFindings(state string) {
	b.Helper()
	source, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		b.Fatalf("%v: make browser installs it", err)
	}
	var findings []string
	b.runActions(chromedp.Evaluate(string(source)+"; true", nil), chromedp.Evaluate(`axe.run().then((result) => result.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 300)).join(" ")))`, &findings,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, finding := range findings {
		b.Errorf("%s: %s", state, finding)
	}
}

// TestUnknown verifies that the page does not take the absence of an answer for health: while rights are
// checked, nothing is well and no figure is 0. Each state of the page is accessible.
func TestUnknown(t *testing.T) {
	var known atomic.Bool
	scopes := func(_ *http.Request, types []schema.GroupVersionResource) []web.Scope {
		all := make([]web.Scope, len(types))
		for i := range all {
			all[i] = web.Scope{All: known.Load(), Unknown: !known.Load()}
		}
		return all
	}
	options := web.Options{Known: scopes, Visible: func(r *http.Request,
		types []schema.GroupVersionResource) ([]web.Scope, error) {
		return scopes(r, types), nil
	}}
	s := servePageWith(t, options, newCluster(t, 0).Config(), platformConfig(t), secrets)
	page := &stoppableServer{}
	page.replaceHandler(s.handler)
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	t.Cleanup(s.handler.Close)
	b := openTab(t, server.URL+s.handler.Login(), 1280, 800)
	b.permitError("net::ERR_")
	b.permitError("400 (Bad Request)")
	b.awaitText(".tiles", "checking 0 of ")
	b.awaitText("[aria-label='Needs attention']", "checking 0 of ")
	if text := b.text(".page"); strings.Contains(text, "All is well") || strings.Contains(text, "No conditions") ||
		regexp.MustCompile("(?m)^0$").MatchString(text) {
		t.Errorf("while rights are checked, the page shows %s", text)
	}
	b.expectNoFindings("overview, unknown")
	b.goTo("#/types")
	b.awaitText("#figures", "checking 0 of ")
	b.expectNoFindings("types, unknown")
	known.Store(true)
	b.awaitText(".grid-row", "workloads")
	b.await(`!document.querySelector("#figures").innerText.includes("checking")`)
	b.expectNoFindings("types")
	b.goTo("#/")
	b.awaitText("[aria-label=Conditions]", "Ready")
	b.awaitText(".tiles", "in ten minutes")
	b.expectNoFindings("overview")
	b.goTo(workloadsPage)
	b.awaitText(".grid-row", "ledger")
	b.expectNoFindings("type")
	b.goTo(workloadsPage + "&query=ledg") // a part of a name
	b.awaitText("details.plan", "1 of ")
	b.awaitText(".grid-row", "ledger")
	b.goTo(workloadsPage + "&query=a%3D%3D")
	b.awaitText(".query-error", "")
	b.await(`!document.querySelector(".query-error").hidden`)
	b.expectNoFindings("type, wrong query")
	b.goTo("#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger")
	b.awaitText(".conditions", "Ready")
	b.awaitText(".graph .node", "production-eu")
	b.expectNoFindings("object")
	b.goTo("#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fnobody")
	b.awaitText(".notice", "Not found")
	b.permitError("404 (Not Found)")
	b.expectNoFindings("object, absent")
	b.goTo("#/changes")
	b.awaitText(".log", "No changes yet")
	b.expectNoFindings("changes")
	b.press("?")
	b.await(`document.getElementById("help").open`)
	b.expectNoFindings("help")
	b.press(kb.Escape)
	b.press("d")
	b.expectNoFindings("changes, another theme")
	page.replaceHandler(abortRequest)
	server.CloseClientConnections()
	b.awaitText("#banner", "crdcache does not answer")
	b.expectNoFindings("connection lost")
}

// TestAccessibility reads the pages like a screen reader and navigates without a mouse.
func TestAccessibility(t *testing.T) {
	page := servePage(t, newCluster(t, 0).Config(), platformConfig(t), secrets)
	b := openTab(t, page.loginLink(), 1280, 800)
	b.awaitText(".connection", "Live")
	expectNames := func(page string) {
		t.Helper()
		for _, s := range b.accessibilityTree() {
			if slices.Contains(rolesWithNames, s.role) && strings.TrimSpace(s.name) == "" {
				t.Errorf("%s: a %s has no name: %v", page, s.role, s.properties)
			}
		}
	}

	b.expectAccessible("region", "Overview", "focused", "true")
	b.awaitText("[aria-label=Conditions]", "Ready")
	expectNames("overview")

	b.goTo("#/types")
	b.awaitText(".grid-row", "workloads")
	b.expectAccessible("grid", "Types", "focused", "true")
	b.expectAccessible("status", "", "live", "polite")
	b.expectAccessible("searchbox", "Search types")
	b.expectAccessible("columnheader", "State")
	b.expectAccessible("group", "Only this state")
	b.expectAccessible("heading", "Types")
	expectNames("types")
	b.press(kb.ArrowDown)
	b.expectAccessible("grid", "Types", "focused", "true")
	b.await(`document.getElementById(document.querySelector("[role=grid]").getAttribute("aria-activedescendant"))?.matches(".grid-row.active[aria-rowindex='3']")`)

	b.goTo(workloadsPage)
	b.awaitText(".grid-row", "ledger")
	b.expectAccessible("grid", "Objects", "focused", "true")
	b.expectAccessible("combobox", "")
	b.expectAccessible("complementary", "Indexes and references")
	b.expectAccessible("gridcell", "ledger")
	expectNames("type")

	b.goTo("#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger")
	b.awaitText(".conditions", "Ready")
	b.awaitText(".graph .node", "production-eu")
	b.expectAccessible("heading", "Workload payments/ledger")
	b.expectAccessible("region", "Changes")
	expectNames("object")

	b.goTo("#/changes")
	b.awaitText(".log", "No changes yet")
	b.expectAccessible("region", "Changes, the latest first", "focused", "true")
	b.expectAccessible("button", "Pause", "pressed", "false")
	b.expectAccessible("group", "Kinds of changes")
	b.press("p")
	b.expectAccessible("button", "Resume", "pressed", "true")
	expectNames("changes")

	b.press("?")
	b.expectAccessible("dialog", "Keyboard", "modal", "true")
	expectNames("help")
	b.press(kb.Escape)
	b.await(`!document.getElementById("help").open`)
}
