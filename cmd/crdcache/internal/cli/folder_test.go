package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/dynamicinformer"
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
