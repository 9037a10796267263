package factory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/readapi/live"
)

// TestRestoredEtcd: etcd is restored from a backup after objects and a CRD were created, changed and deleted. The API server
// accepts watches from the lost versions, and sends nothing. Caches, handlers, the tracker and what is served from caches
// become what the server has.
func TestRestoredEtcd(t *testing.T) {
	tracker := harness.RunTracker(t, harness.Config(t))
	s := newScene(t, dynamicinformer.Options{Types: tracker.Types()})
	for name, size := range map[string]int64{"same": 1, "changed": 1, "deleted": 1} {
		s.put(name, size)
	}
	restore := harness.BackUpEtcd(t)

	i, j := s.follow(s.widgets)
	server, err := live.New(live.Options{Factory: s.factory, Types: tracker.Types(), Config: harness.Config(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if err := server.Keep(i); err != nil {
		t.Fatal(err)
	}
	s.sync()
	if err := server.WaitForSync(s.ctx, s.widgets.GroupResource()); err != nil {
		t.Fatal(err)
	}
	j.expect("add changed", "add deleted", "add same")
	lost := schema.GroupVersionResource{Group: s.widgets.Group, Version: "v1", Resource: "gadgets"}
	harness.InstallCRDs(t, harness.NewCRD(lost.Group, "Gadget"))
	harness.Eventually(t, func(context.Context) error {
		if _, ok := tracker.Snapshot().Lookup(lost.GroupResource()); !ok {
			return fmt.Errorf("the tracker does not know %v", lost)
		}
		return nil
	})
	s.put("changed", 2)
	j.expect("update changed")
	s.delete("deleted")
	j.expect("delete deleted")
	for n := range 20 { // these events are not what the restored server gets to soon
		s.put("lost", int64(n+1))
	}
	harness.Eventually(t, func(context.Context) error { return s.lastIs(i, "lost", 20) })
	version := i.Snapshot().ResourceVersion()
	j.rest()

	restore()

	harness.Eventually(t, func(context.Context) error { return s.mirrors(i) })
	want := []string{"add deleted", "delete lost", "update changed"}
	var seen []string
	harness.Eventually(t, func(context.Context) error { // the handler lags behind the cache
		seen = append(seen, slices.DeleteFunc(j.rest(), func(event string) bool { return event == "update lost" })...)
		if slices.Sort(seen); !slices.Equal(seen, want) {
			return fmt.Errorf("the handler saw %q, want %q", seen, want)
		}
		return nil
	})
	// Without watch-list, the server may refuse the lost version in a list before the check finds it.
	if relists := i.Status().Relists; relists.Restored+relists.TooLarge != 1 {
		t.Errorf("relists: %+v", relists)
	}
	s.await(i, status.Synced, status.ReasonNone)
	s.put("new", 1)
	j.expect("add new")
	s.expectMirror(i)
	harness.Eventually(t, func(context.Context) error {
		if _, ok := tracker.Snapshot().Lookup(lost.GroupResource()); ok {
			return fmt.Errorf("the tracker still has %v", lost)
		}
		return nil
	})
	s.expectServed(server, version)
}

// lastIs returns an error unless a widget has a size in the cache.
func (s *scene) lastIs(i *dynamicinformer.Informer, name string, want int64) error {
	o, ok, err := i.GetStore().GetByKey(s.ns + "/" + name)
	if err != nil || !ok || size(o) != want {
		return fmt.Errorf("%s is %v, %v", name, o, err)
	}
	return nil
}

// mirrors returns an error unless the cache has the versions of objects that the server has.
func (s *scene) mirrors(i *dynamicinformer.Informer) error {
	list, err := s.admin.Resource(s.widgets).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if got := len(i.GetStore().ListKeys()); got != len(list.Items) {
		return fmt.Errorf("there are %d objects, want %d; the status is %+v", got, len(list.Items), i.Status())
	}
	for _, want := range list.Items {
		stored, _ := i.Snapshot().Stored(key(&want))
		o, ok := stored.(metav1.Object)
		if !ok || o.GetResourceVersion() != want.GetResourceVersion() {
			return fmt.Errorf("%s is not what the server has", want.GetName())
		}
	}
	return nil
}

// expectServed checks what is served from the cache, and that a watch from a lost version is refused.
func (s *scene) expectServed(server *live.Server, lost string) {
	s.Helper()
	path := "/apis/" + s.widgets.Group + "/v1/widgets"
	want, err := s.admin.Resource(s.widgets).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var got struct{ Items []any }
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequestWithContext(s.ctx, http.MethodGet, path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Items) != len(want.Items) {
		s.Errorf("served are %d %s, want %d objects", w.Code, w.Body, len(want.Items))
	}
	w = httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequestWithContext(s.ctx, http.MethodGet, path+"?watch=true&timeoutSeconds=1&resourceVersion="+lost, nil))
	if w.Code != http.StatusGone {
		s.Errorf("a watch from %s got %d %s", lost, w.Code, w.Body)
	}
}
