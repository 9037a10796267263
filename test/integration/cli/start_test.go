package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// listCounter counts the requests for all objects of a type: lists without a limit of one, and watch-lists.
type listCounter struct {
	http.RoundTripper
	path  string // ends the path of the type
	mu    sync.Mutex
	lists []string
}

func (c *listCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if strings.HasSuffix(r.URL.Path, c.path) && (query.Get("sendInitialEvents") == "true" ||
		query.Get("watch") == "" && query.Get("limit") != "1") {
		c.mu.Lock()
		c.lists = append(c.lists, r.URL.String())
		c.mu.Unlock()
	}
	return c.RoundTripper.RoundTrip(r)
}

func (c *listCounter) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// cachedObjects runs an informer until it is synced, and returns its objects by key and the lists it needed.
func cachedObjects(t *testing.T, gvr schema.GroupVersionResource,
	kept *disk.Store) (objects map[string]any, resumed bool, lists []string) {
	t.Helper()
	config, counter := rest.CopyConfig(harness.Config(t)), &listCounter{path: "/" + gvr.Resource}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counter.RoundTripper = next
		return counter
	})
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Persistence: kept})
	must(t, err)
	informer, err := factory.ForResource(gvr)
	if err == nil {
		err = factory.Start(t.Context())
	}
	if err == nil {
		err = factory.WaitForSync(t.Context())
	}
	must(t, err)
	objects = map[string]any{}
	for _, object := range informer.GetStore().List() {
		u := object.(*unstructured.Unstructured)
		objects[u.GetNamespace()+"/"+u.GetName()] = u.Object
	}
	resumed = informer.Persistence().Resumed
	must(t, factory.Shutdown(t.Context()))
	if err := kept.Close(t.Context()); err != nil || informer.Persistence().Err != nil {
		t.Errorf("%v, %v", err, informer.Persistence().Err)
	}
	return objects, resumed, counter.lists
}

// TestStartFromASnapshot starts an informer from a snapshot, after an update, a deletion and a creation. It
// lists nothing and has the objects of an informer that lists. The next one continues from the folder.
func TestStartFromASnapshot(t *testing.T) {
	harness.Require(t, harness.Since("1.34")) // older servers do not update an idle watch cache
	group := harness.Group(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Gizmo"))
	gvr, ns := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gizmos"}, harness.Namespace(t)
	gizmo := func(n int) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gizmo",
			"metadata": map[string]any{"name": fmt.Sprint("g-", n), "namespace": ns}, "spec": map[string]any{"n": int64(n)}}}
	}
	for n := range 30 {
		harness.Apply(t, gizmo(n))
	}
	path := filepath.Join(t.TempDir(), "before.snapshot")
	run(t, harness.Crdcache(t), "snapshot", "save", path, "gizmos."+group).expect(t, 0, "", "saved ")
	before, err := os.ReadFile(path)
	must(t, err)
	client := dynamic.NewForConfigOrDie(harness.Config(t)).Resource(gvr).Namespace(ns)
	updated, err := client.Get(t.Context(), "g-7", metav1.GetOptions{})
	if err == nil {
		updated.SetLabels(map[string]string{"changed": "yes"})
		_, err = client.Update(t.Context(), updated, metav1.UpdateOptions{})
	}
	if err == nil {
		err = client.Delete(t.Context(), "g-8", metav1.DeleteOptions{})
	}
	must(t, err)
	harness.Apply(t, gizmo(99))

	want, _, lists := cachedObjects(t, gvr, disk.New(t.TempDir(), disk.Options{}))
	if len(lists) == 0 || len(want) != 30 {
		t.Fatalf("a cold informer has %d objects of %v", len(want), lists)
	}
	dir := t.TempDir()
	for _, options := range []disk.Options{{Snapshot: path}, {}} {
		got, resumed, lists := cachedObjects(t, gvr, disk.New(dir, options))
		if diff := cmp.Diff(want, got); diff != "" || !resumed || len(lists) > 0 {
			t.Errorf("with %+v: resumed: %v, lists: %v, objects (-cold +restored):\n%.2000s", options, resumed, lists, diff)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the snapshot has changed: %v", err)
	}
}
