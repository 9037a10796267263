package browser_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chromedp/chromedp"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/testcluster"
)

// TestManyTypes shows more types than fit on a screen.
func TestManyTypes(t *testing.T) {
	const many = 1500
	var options testcluster.Options
	var all []schema.GroupVersionResource
	for i := range many {
		gvr := schema.GroupVersionResource{Group: "many.example.com", Version: "v1",
			Resource: fmt.Sprintf("kind%04ds", i)}
		all = append(all, gvr)
		options.Types = append(options.Types, readapi.Type{
			Group: gvr.Group, Names: crd.Names{Plural: gvr.Resource, Kind: fmt.Sprintf("Kind%04d",
				i)}, Namespaced: true, Versions: []readapi.Version{{Name: "v1"}},
		})
	}
	cluster, err := testcluster.New(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	firstTypeOnly := indexers.Source{Name: "none.yaml",
		Data: []byte("apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: none}\nspec:\n  resources:\n  - name: first\n    match: {group: many.example.com, resource: kind0000s}\n")}
	b := open(t, serve(t, cluster.Config(), firstTypeOnly, all[1:]...).link(), 1280, 800)
	b.has(".tile", "1,500")
	b.goTo("#/types")
	b.has(".figures", "1,500 types")
	b.has(".grid-row", "1,500 without objects")
	b.goTo("#/types?sort=name")
	b.await(`document.querySelector("[role=grid]").getAttribute("aria-rowcount") === "1501"`)
	if n := value[int](b, `document.querySelectorAll(".grid-row").length`); n > 60 {
		t.Errorf("%d rows are elements, want at most 60", n)
	}
	b.run(chromedp.SendKeys("[type=search]", "kind1234"))
	b.await(`document.querySelector("[role=grid]").getAttribute("aria-rowcount") === "2"`)
	b.has(".grid-row", "kind1234s")
}
