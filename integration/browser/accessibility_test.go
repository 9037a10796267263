package browser_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
