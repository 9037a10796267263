package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestPersistedCache verifies that the commands answer from the folder of a running process as from its
// server, that a diff with the server finds no difference, and that other types are unknown.
func TestPersistedCache(t *testing.T) {
	server := widgetServer(t)
	dir := filepath.Join(t.TempDir(), "cache")
	kept := disk.New(dir, disk.Options{})
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config(), Persistence: kept,
		PersistenceInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	informer, err := factory.ForResource(widgets)
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = factory.Shutdown(t.Context())
		_ = kept.Close(t.Context())
	})
	saved := func(objects int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); informer.Persistence().Checkpoint.Objects != objects; {
			if time.Now().After(deadline) {
				t.Fatalf("saved %+v, want %d objects", informer.Persistence(), objects)
			}
			time.Sleep(time.Millisecond)
		}
	}
	saved(1)
	for n := range 30 { // changes after the whole content
		server.Create(t, widgets, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": fmt.Sprint("w", n), "namespace": "default"},
		}})
	}
	saved(31)
	age := regexp.MustCompile(`\b\d+s\b`)
	for _, args := range []string{"dump widgets -o json", "query widgets -o name", "resources -o name", "tree widgets/a"} {
		_, want, _ := runCommand(t, append(strings.Fields(args), "-s", server.URL)...)
		code, got, errOut := runCommand(t, append(strings.Fields(args), "--from", dir)...)
		if args == "resources -o name" {
			if code != ExitOK || !strings.Contains(got, "widgets") {
				t.Errorf("%s: exit code %d, %s%s", args, code, got, errOut)
			}
		} else if code != ExitOK || age.ReplaceAllString(got, "") != age.ReplaceAllString(want, "") {
			t.Errorf("%s: exit code %d, output %s%s, want %s", args, code, got, errOut, want)
		}
	}
	code, out, errOut := runCommand(t, "diff", dir, "live", "widgets", "-s", server.URL)
	if code != ExitOK {
		t.Errorf("diff: exit code %d, %s%s", code, out, errOut)
	}
	code, out, errOut = runCommand(t, "snapshot", "info", dir)
	if code != ExitOK || !strings.Contains(out, "widgets.example.com") || !strings.Contains(out, "unknown: ") ||
		strings.Contains(out, "partial: ") {
		t.Errorf("snapshot info: exit code %d, %s%s", code, out, errOut)
	}
	if code, out, errOut = runCommand(t, "dump", "gadgets", "--from", dir); code == ExitOK || out != "" ||
		!strings.Contains(errOut, "unknown types") {
		t.Errorf("dump of another type: exit code %d, %s%s", code, out, errOut)
	}
}

// TestFollowsFromSnapshot verifies that an informer that starts from a snapshot lists nothing, not even by a
// watch-list, and follows the changes since the save and after the start.
func TestFollowsFromSnapshot(t *testing.T) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Singular: "widget", Namespaced: true},
		apitest.Type{GVR: namespaces, Kind: "Namespace", Singular: "namespace"})
	create := func(names ...string) {
		for _, name := range names {
			server.Create(t, widgets, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Widget",
				"metadata": map[string]any{"name": name, "namespace": "default"}}})
		}
	}
	server.Create(t, namespaces, &unstructured.Unstructured{Object: map[string]any{ // identifies the cluster
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kube-system"}}})
	create("a", "b")
	path := filepath.Join(t.TempDir(), "before.snapshot")
	if code, _, errOut := runCommand(t, "snapshot", "save", path, "widgets", "-s", server.URL); code != ExitOK {
		t.Fatal(errOut)
	}
	server.Delete(t, widgets, "default", "b")
	create("c")
	earlier := len(server.Requests())
	kept := disk.New(t.TempDir(), disk.Options{Snapshot: path})
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config(), Persistence: kept})
	if err != nil {
		t.Fatal(err)
	}
	informer, err := factory.ForResource(widgets)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 9)
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen <- "add " + object.(*unstructured.Unstructured).GetName() },
		DeleteFunc: func(any) { seen <- "delete" },
	})
	if err = errors.Join(err, factory.Start(t.Context()), factory.WaitForSync(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = factory.Shutdown(context.Background())
		_ = kept.Close(context.Background())
	})
	first := []string{<-seen, <-seen}
	slices.Sort(first)
	create("d")
	created := <-seen
	server.Delete(t, widgets, "default", "a")
	got := append(first, created, <-seen)
	if want := []string{"add a", "add c", "add d", "delete"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if !informer.Persistence().Resumed {
		t.Errorf("%+v, want that the snapshot was used", informer.Persistence())
	}
	for _, request := range server.Requests()[earlier:] {
		if strings.Contains(request, "/widgets") && !strings.HasSuffix(request, "limit=1") &&
			(strings.HasPrefix(request, "list ") || strings.Contains(request, "sendInitialEvents")) {
			t.Errorf("the request %s, want none for all objects", request)
		}
	}
}
