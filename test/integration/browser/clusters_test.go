package browser_test

import (
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/crdcache/crdcache/serving/web"
)

// TestClusterSwitch opens the same page of another cluster.
func TestClusterSwitch(t *testing.T) {
	one := servePage(t, newCluster(t, 0).Config(), platformConfig(t))
	two := servePage(t, newCluster(t, 3).Config(), platformConfig(t))
	handler, err := web.NewHandler(web.Source{Title: "one", Factory: one.factory},
		web.Options{Clusters: []web.Source{{Title: "arn:eks/two", Factory: two.factory}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(handler.Close)
	b := openTab(t, server.URL+handler.Login(), 1280, 800)
	b.goTo(workloadsPage + "&sort=name")
	b.awaitText(".grid-row", "cart")
	b.await(`document.getElementById("cluster")?.value === "one"`)
	// RunResponse waits for the new page.
	if _, err := chromedp.RunResponse(b.ctx, chromedp.Evaluate(`{
  const choice = document.getElementById("cluster");
  choice.value = "arn:eks/two";
  choice.dispatchEvent(new Event("change"));
} true`, nil)); err != nil {
		t.Fatal(err)
	}
	b.await(`location.pathname === "/clusters/arn%3Aeks%2Ftwo/" && document.getElementById("cluster")?.value === "arn:eks/two"`)
	b.awaitText(".grid-row", "many-00000")
}
