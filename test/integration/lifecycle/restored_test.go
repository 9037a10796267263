package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/serving/readapi/live"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestRestoredEtcd restores etcd from a backup after objects and a CRD were created, changed and deleted. The
// API server accepts watches at lost versions and sends nothing. Caches, handlers, the tracker and served
// lists must agree with the server.
func TestRestoredEtcd(t *testing.T) {
	s := newFixture(t, dynamicinformer.Options{}, nil)
	group := harness.Group(t)
	widgets, gadgets := harness.NewCRD(group, "Widget"), harness.NewCRD(group, "Gadget")
	harness.InstallCRDs(t, widgets)
	for _, name := range []string{"same", "changed", "deleted"} {
		s.create(widgets, name)
	}
	restore := backUpEtcd(t)

	i, j := s.startInformer(resourceOf(widgets))
	server := s.startServer(i)
	j.expect("add changed", "add deleted", "add same")
	harness.InstallCRDs(t, gadgets)
	s.awaitTracked(gadgets, true)
	s.touch(widgets, "changed")
	j.expect("update changed")
	s.delete(widgets, "deleted")
	j.expect("delete deleted")
	s.create(widgets, "lost")
	for range 20 { // the restored server does not reach these versions soon
		s.touch(widgets, "lost")
	}
	last, err := s.objects(widgets).Get(s.ctx, "lost", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, func(context.Context) error { return checkCached(i, last) })
	version := i.Snapshot().ResourceVersion()
	j.rest()

	restore()

	harness.Eventually(t, func(context.Context) error { return s.checkAgreement(i, "") })
	want := []string{"add deleted", "delete lost", "update changed"}
	var received []string
	harness.Eventually(t, func(context.Context) error { // the handler may lag behind the cache
		// A list may repeat the other objects, and the last lost changes may arrive late.
		received = append(received, slices.DeleteFunc(j.rest(), func(event string) bool {
			return event == "update lost" || event == "update same"
		})...)
		if slices.Sort(received); !slices.Equal(slices.Compact(received), want) {
			return fmt.Errorf("the handler received %q, want %q", received, want)
		}
		return nil
	})
	// Without watch-lists, a list may be rejected because of the lost version before the check detects the
	// restore.
	if relists := i.Status().Relists; relists.Restored+relists.TooLarge != 1 {
		t.Errorf("relists = %+v, want one", relists)
	}
	s.awaitState(i, status.Synced, status.ReasonNone)
	s.create(widgets, "new")
	j.awaitLive("new")
	s.awaitTracked(gadgets, false)
	s.expectServed(server, i, version)
}

// startServer serves a type from its cache.
func (s *fixture) startServer(i *dynamicinformer.Informer) *live.Server {
	s.Helper()
	server, err := live.New(live.Options{Factory: s.factory, Types: s.tracker.Types(),
		Config: harness.Config(s)})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(server.Close)
	if err := server.AddType(i); err != nil {
		s.Fatal(err)
	}
	s.awaitSynced(i, 1)
	if err := server.WaitForSync(s.ctx, i.GVR().GroupResource()); err != nil {
		s.Fatal(err)
	}
	return server
}

// awaitTracked waits until the tracker knows the type, or no longer knows it.
func (s *fixture) awaitTracked(definition *unstructured.Unstructured, want bool) {
	s.Helper()
	harness.Eventually(s, func(context.Context) error {
		if _, got := s.tracker.Snapshot().Lookup(resourceOf(definition).GroupResource()); got != want {
			return fmt.Errorf("the tracker knows %s: %v, want %v", definition.GetName(), got, want)
		}
		return nil
	})
}

// checkCached returns an error unless the cache has this version of an object.
func checkCached(i *dynamicinformer.Informer, want *unstructured.Unstructured) error {
	stored, _ := i.Snapshot().Stored(want.GetNamespace() + "/" + want.GetName())
	if o, ok := stored.(metav1.Object); !ok || o.GetResourceVersion() != want.GetResourceVersion() {
		return fmt.Errorf("%s differs from the server's object", want.GetName())
	}
	return nil
}

// checkAgreement returns an error unless the cache has the server's selected objects with their versions.
func (s *fixture) checkAgreement(i *dynamicinformer.Informer, selector string) error {
	list, err := s.admin.Resource(i.GVR()).List(s.ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	if got := len(i.GetStore().ListKeys()); got != len(list.Items) {
		return fmt.Errorf("the cache has %d objects, want %d; the status is %+v", got,
			len(list.Items), i.Status())
	}
	for k := range list.Items {
		if err := checkCached(i, &list.Items[k]); err != nil {
			return err
		}
	}
	return nil
}

// expectServed checks the list from the cache, and that a watch from a lost version is refused.
func (s *fixture) expectServed(server *live.Server, i *dynamicinformer.Informer, lost string) {
	s.Helper()
	path := fmt.Sprintf("/apis/%s/v1/%s", i.GVR().Group, i.GVR().Resource)
	get := func(query string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(s.ctx, http.MethodGet, path+query, nil))
		return w
	}
	var got struct{ Items []any }
	w := get("")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Items) != 4 {
		s.Errorf("the answer is %d %s, want 4 objects", w.Code, w.Body)
	}
	if w := get("?watch=true&timeoutSeconds=1&resourceVersion=" + lost); w.Code != http.StatusGone {
		s.Errorf("a watch from the lost version %s = %d %s, want 410", lost, w.Code, w.Body)
	}
}

// backUpEtcd restarts etcd and copies its data. restore kills the API server and etcd, restores the copy and
// starts both again. All later changes are lost, and resource versions decrease.
func backUpEtcd(t testing.TB) (restore func()) {
	t.Helper()
	data := filepath.Join(filepath.Dir(harness.Kubeconfig(t)), "etcd")
	backup := filepath.Join(t.TempDir(), "etcd")
	harness.KillEtcd(t)
	copyFolder(t, backup, data)
	harness.RestartEtcd(t)
	return func() {
		t.Helper()
		harness.KillAPIServer(t)
		harness.KillEtcd(t)
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
		copyFolder(t, data, backup)
		harness.RestartEtcd(t)
		harness.RestartAPIServer(t)
	}
}

func copyFolder(t testing.TB, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil { // etcd requires a private folder
		t.Fatal(err)
	}
}
