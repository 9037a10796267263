package browser_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/test/integration/harness"
)

const workloadsID = "workloads.demo.crdcache.dev/v1"

// TestCrdcached tests the page of crdcached with a user who may list everything, and with a user who may list
// one type in one namespace.
func TestCrdcached(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"/crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"/objects")...)
	indexes, err := filepath.Abs(testdata + "/indexes/platform.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := harness.StartCrdcached(t, fmt.Sprintf("types: ['*.demo.crdcache.dev', namespaces]\nindexConfigs: [%s]\npage: {enabled: true}\n", indexes))
	t.Run("administrator", func(t *testing.T) { testAdministrator(t, s) })
	t.Run("tenant", func(t *testing.T) { testTenant(t, s) })
}

// openAsUser opens the page of crdcached as a user.
func openAsUser(t *testing.T, s *harness.CrdcachedServer, user *harness.User, path string) *tab {
	t.Helper()
	headers := network.Headers{"Authorization": "Bearer " + user.Config(t).BearerToken}
	return openTabWithHeaders(t, s.URL+path, headers, 1280, 800,
		chromedp.Flag("ignore-certificate-errors", true))
}

var pageRight = rbacv1.PolicyRule{NonResourceURLs: []string{"/page/*"}, Verbs: []string{"get"}}

func testAdministrator(t *testing.T, s *harness.CrdcachedServer) {
	user := harness.NewUser(t, "administrator")
	user.Grant(t, "", pageRight, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"},
		Verbs: []string{"*"}})
	b := openAsUser(t, s, user, "/page/open")
	b.awaitText(".connection", "Live")
	b.goTo("#/types")
	b.awaitText(".grid-row", workloadsID)
	b.awaitText(".grid-row", "namespaces/v1")
	b.await("document.querySelector('#withheld').hidden")
	b.goTo("#/type?id=" + workloadsID)
	b.awaitText(".grid-row", "ledger")
	b.awaitText(".grid-row", "storefront")
	b.awaitText(".side", "environment")
	b.goTo("#/object?type=" + workloadsID + "&key=payments%2Fledger")
	b.awaitText(".graph .node", "production-eu")
	b.changeUntilShown("payments", "ledger")
	b.screenshot("object")
}

func testTenant(t *testing.T, s *harness.CrdcachedServer) {
	user := harness.NewUser(t, "tenant")
	user.Grant(t, "", pageRight)
	user.Grant(t, "payments", rbacv1.PolicyRule{APIGroups: []string{workloads.Group},
		Resources: []string{"workloads"}, Verbs: []string{"list"}})
	b := openAsUser(t, s, user, "/page/open?namespace=payments")
	b.awaitText(".connection", "Live")
	b.goTo("#/types?sort=name")
	b.awaitText(".grid-row", "⊘ Withheld")
	b.awaitText("#withheld", "you are not allowed to list it")
	b.await("[...document.querySelectorAll('.grid-row')].some((e) => e.innerText.includes('workloads') && e.innerText.includes('● Synced'))")
	b.screenshot("types")
	b.goTo("#/type?id=" + workloadsID)
	b.awaitText(".grid-row", "ledger")
	b.awaitText("details.plan", "5 of 5 objects")
	b.awaitText(".side", "1 types could not be checked")
	if text := b.text("body"); strings.Contains(text, "storefront") || strings.Contains(text, "dns") {
		t.Errorf("the page shows namespaces that the user cannot read: %s", text)
	}
	b.goTo("#/object?type=" + workloadsID + "&key=payments%2Fledger")
	b.awaitText(".yaml li", "ledger")
	b.changeUntilShown("payments", "ledger")
	b.screenshot("object")
}

// changeUntilShown updates an object until its page shows a change. The page does not show when its stream of
// changes has started.
func (b *tab) changeUntilShown(namespace, name string) {
	b.Helper()
	admin, err := dynamic.NewForConfig(harness.Config(b))
	if err != nil {
		b.Fatal(err)
	}
	for replicas := 10; !strings.Contains(b.text(".changes"), ".spec.replicas"); replicas++ {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		if _, err := admin.Resource(workloads).Namespace(namespace).Patch(b.ctx, name, types.MergePatchType,
			patch, metav1.PatchOptions{FieldManager: "night-shift"}); err != nil {
			b.Fatal(err)
		}
	}
	b.awaitText(".changes .by", "night-shift")
}

// TestRealServer opens the page for a real API server, which records field managers.
func TestRealServer(t *testing.T) {
	config := harness.Config(t)
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"/crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"/objects")...)
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b := openTab(t, servePage(t, config, platformConfig(t), secrets).loginLink()+"#/types", 1280, 800)
	b.awaitText(".connection", "Live")
	b.awaitText(".grid-row", "workloads.demo.crdcache.dev/v1")
	b.goTo("#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger")
	b.awaitText(".yaml li", "managedFields: …")
	b.awaitText(".graph .node", "production-eu")
	patch := func(body, manager, subresource string) {
		t.Helper()
		_, err := admin.Resource(workloads).Namespace("payments").Patch(context.Background(), "ledger",
			types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}, subresources(
				subresource)...)
		if err != nil {
			t.Fatal(err)
		}
	}
	// The page does not indicate that it receives changes, so the test patches the object until the page
	// shows a change.
	for replicas := 10; !strings.Contains(b.text(".changes"), ".spec.replicas"); replicas++ {
		patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas), "night-shift", "")
		if b.ctx.Err() != nil {
			t.Fatal(b.ctx.Err())
		}
	}
	b.awaitText(".changes .by", "night-shift")
	patch(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"DiskFull","message":"no space left","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "operator", "status")
	b.awaitText(".changes .by", "operator/status")
	b.awaitText(".conditions", "DiskFull")
	b.awaitText(".conditions .bad", "Ready")
	b.screenshot("object")
}

func subresources(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}
