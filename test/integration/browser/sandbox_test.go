package browser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/test/integration/harness"
)

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
