package browser_test

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chromedp/chromedp"

	"github.com/crdcache/crdcache/readapi/testcluster"
)

// TestStates watches types become cached on the page of changes. The user may not read one of them.
func TestStates(t *testing.T) {
	cluster := inMemory(t, 0)
	cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: "services"},
		Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not today")})
	s := serve(t, cluster.Config(), platform(t))
	b := open(t, s.link()+"#/changes", 1000, 700)
	b.has(".connection", "Live")
	b.has(".log", "No changes yet")
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
	shown := func(op, resource string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".log li")].some((e) => e.checkVisibility() && e.innerText.includes(%q) && e.innerText.includes(%q))`, op, resource)
	}
	b.await(shown("● synced", configMaps))
	b.await(shown("▲ degraded", services))
	b.await(shown("Forbidden", services))
	b.picture("states")
	b.run(chromedp.Click("//button[text()='types']", chromedp.BySearch))
	b.await("!" + shown("", ""))
	b.run(chromedp.Click("//button[text()='types']", chromedp.BySearch))
	b.await(shown("● synced", configMaps))
	b.run(chromedp.SendKeys("[type=search]", "degraded"))
	b.await("!" + shown("", configMaps))
	b.await(shown("▲ degraded", services))
}
