package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi/testcluster"
)

// TestManyTypes shows more types than fit on a screen.
func TestManyTypes(t *testing.T) {
	const many = 1500
	types, all := emptyTypes(many)
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Types: types})
	if err != nil {
		t.Fatal(err)
	}
	firstTypeOnly := indexers.Source{Name: "none.yaml",
		Data: []byte("apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: none}\nspec:\n  resources:\n  - name: first\n    match: {group: many.example.com, resource: kind0000s}\n")}
	b := openTab(t, servePage(t, cluster.Config(), firstTypeOnly, all[1:]...).loginLink(), 1280, 800)
	b.awaitText(".tile", "1,500")
	b.goTo("#/types")
	b.awaitText(".figures", "1,500 types")
	b.awaitText(".grid-row", "1,500 without objects")
	b.goTo("#/types?sort=name")
	b.await(`document.querySelector("[role=grid]").getAttribute("aria-rowcount") === "1501"`)
	if n := evaluate[int](b, `document.querySelectorAll(".grid-row").length`); n > 60 {
		t.Errorf("%d rows are elements, want at most 60", n)
	}
	b.runActions(chromedp.SendKeys("[type=search]", "kind1234"))
	b.await(`document.querySelector("[role=grid]").getAttribute("aria-rowcount") === "2"`)
	b.awaitText(".grid-row", "kind1234s")
}
