package crdcached_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestRestoredEtcd restores etcd from a backup after objects were created, changed and deleted. Both a
// running crdcached, and one that restores its saved state after that, must serve the objects of the API
// server.
func TestRestoredEtcd(t *testing.T) {
	for name, runs := range map[string]bool{"running": true, "stopped": false} {
		t.Run(name, func(t *testing.T) { testRestoredEtcd(t, runs) })
	}
}

func testRestoredEtcd(t *testing.T, runs bool) {
	widgets := installWidgets(t)
	namespace := harness.Namespace(t)
	objects := admin(t).Resource(widgets).Namespace(namespace)
	create := func(name string) {
		t.Helper()
		_, err := objects.Create(t.Context(), object(widgets, name, "1"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"same", "changed", "deleted"} {
		create(name)
	}
	server := newDaemon(t, widgets) // its account is in the backup
	server.cacheDir += fmt.Sprintf("persistenceDirectory: %q\n", t.TempDir())
	restore := harness.BackUpEtcd(t)

	server.restart()
	patch := func(name string, value int) {
		t.Helper()
		text := fmt.Appendf(nil, `{"metadata":{"labels":{"value":"%d"}}}`, value)
		_, err := objects.Patch(t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	patch("changed", 2)
	if err := objects.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	create("lost")
	for n := range 200 { // the restored server will not reach this version soon
		patch("lost", n)
	}
	server.expectSameVersions(widgets)
	if !runs {
		if err := server.server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	restore()
	if !runs {
		server.restart()
	}
	server.expectSameVersions(widgets)
	if !runs {
		return
	}
	server.expectRestoreInMetrics()
	if err := server.server.Stop(); err != nil {
		t.Fatal(err)
	}
	server.restart()
	server.expectSameVersions(widgets)
}

// expectSameVersions waits until a read at any version returns the objects of the API server.
func (d *daemon) expectSameVersions(gvr schema.GroupVersionResource) {
	d.Helper()
	harness.Eventually(d, func(ctx context.Context) error { return sameVersions(ctx, d.T, d.config(), gvr) })
}

// restoreRelists matches a relist after a restore. Its reason depends on the request that detected the
// restore.
var restoreRelists = regexp.MustCompile(`(?m)^crdcache_relists_total\{.*reason="(Restored|TooLarge)".*\} [1-9]`)

// expectRestoreInMetrics waits until the metrics count a relist after a restore. Answers can be correct
// earlier, because crdcached may forward requests to the API server until the caches are current.
func (d *daemon) expectRestoreInMetrics() {
	d.Helper()
	harness.Eventually(d, func(context.Context) error {
		metrics := ask(d.T, d.config(), http.MethodGet, "/metrics")
		if restoreRelists.MatchString(metrics.Body) {
			return nil
		}
		relists := regexp.MustCompile(`(?m)^crdcache_relists_total.*$`).FindAllString(metrics.Body, -1)
		return fmt.Errorf("no metric of relists names the restore: %q", relists)
	})
}

// sameVersions returns an error unless a read at any version returns the objects of the API server.
func sameVersions(
	ctx context.Context, t *testing.T, config *rest.Config, gvr schema.GroupVersionResource,
) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	got, err := client.Resource(gvr).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	want, err := admin(t).Resource(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	versions := map[types.UID]string{}
	for _, o := range got.Items {
		versions[o.GetUID()] = o.GetResourceVersion()
	}
	for _, o := range want.Items {
		if version, want := versions[o.GetUID()], o.GetResourceVersion(); version != want {
			return fmt.Errorf("%s is of version %q, and of %s at the API server", o.GetName(), version, want)
		}
	}
	if len(got.Items) != len(want.Items) {
		return fmt.Errorf("there are %d objects, and %d at the API server", len(got.Items), len(want.Items))
	}
	return nil
}
