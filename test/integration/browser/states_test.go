package browser_test

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chromedp/chromedp"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestStates verifies that the page of changes shows that a type is synced, and why another one is degraded.
func TestStates(t *testing.T) {
	cluster := newCluster(t, 0)
	cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: "services"},
		Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not today")})
	s := servePage(t, cluster.Config(), platformConfig(t))
	b := openTab(t, s.loginLink()+"#/changes", 1000, 700)
	b.awaitText(".connection", "Live")
	b.awaitText(".log", "No changes yet")
	for _, resource := range []string{"configmaps", "services"} {
		if _, err := s.factory.ForResource(schema.GroupVersionResource{Version: "v1",
			Resource: resource}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	const configMaps, services = "configmaps/v1", "services/v1"
	shownIn := func(op, resource string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".log li")].some((e) => e.checkVisibility() && e.innerText.includes(%q) && e.innerText.includes(%q))`, op, resource)
	}
	b.await(shownIn("● synced", configMaps))
	b.await(shownIn("▲ degraded", services))
	b.await(shownIn("Forbidden", services))
	b.screenshot("states")
	b.runActions(chromedp.Click("//button[text()='types']", chromedp.BySearch))
	b.await("!" + shownIn("", ""))
	b.runActions(chromedp.Click("//button[text()='types']", chromedp.BySearch))
	b.await(shownIn("● synced", configMaps))
	b.runActions(chromedp.SendKeys("[type=search]", "degraded"))
	b.await("!" + shownIn("", configMaps))
	b.await(shownIn("▲ degraded", services))
}
