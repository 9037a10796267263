package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/internal/testkit"
)

// TestReload verifies that serve follows a file that is replaced and the file of a mounted ConfigMap. It
// keeps the previous config while a file is invalid. Watches continue.
func TestReload(t *testing.T) {
	sockets, err := os.MkdirTemp("", "reload") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	t.Setenv("XDG_RUNTIME_DIR", sockets)
	group, ns := harness.Group(t), harness.Namespace(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Widget"))
	config := func(resource, index string) string {
		return "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: " + resource +
			"}\nspec:\n  resources:\n  - name: " + resource + "\n    match: {group: " + group +
			", version: v1, resource: widgets}\n    indexes: [{name: " + index + ", path: .metadata.name}]\n"
	}
	file, mount := filepath.Join(t.TempDir(), "file.yaml"), &testkit.ConfigMapMount{Dir: t.TempDir()}
	mounted := filepath.Join(mount.Dir, "mounted.yaml")
	replaceMounted := func(index string) {
		t.Helper()
		mount.Swap(t, map[string]string{"mounted.yaml": config("mounted", index)})
	}
	testkit.ReplaceFile(t, file, config("file", "one"))
	replaceMounted("two")
	serve := startCommand(t, harness.Crdcache(t), "serve", "--config", file, "--config", mounted)
	serve.awaitStderr(t, "serving the cache of")
	harness.Apply(t, widget(group, ns, "a"))
	awaitQuery := func(config, index string) {
		t.Helper()
		harness.Eventually(t, func(context.Context) error { // until then the cluster answers
			r := run(t, harness.Crdcache(t), "query", "widgets."+group, "-n", ns, "--config", config, "--config",
				mounted, "--index", index+"=a", "-o", "name", "-v")
			if r.stdout != "widget."+group+"/a\n" || !strings.Contains(r.stderr, "answered by the cache server") {
				return fmt.Errorf("query by %s: %+v, want the widget a from the cache server", index, r)
			}
			return nil
		})
	}
	awaitQuery(file, "one")
	awaitQuery(file, "two")
	watch := startCommand(t, harness.Crdcache(t), "watch", "widgets."+group, "-n", ns, "-o", "name", "-v")
	watch.awaitOutput(t, "widget."+group+"/a\n")

	testkit.ReplaceFile(t, file, config("file", "three"))
	serve.awaitStderr(t, "note: the config has changed: [file]")
	awaitQuery(file, "three")
	replaceMounted("four")
	serve.awaitStderr(t, "note: the config has changed: [mounted]")
	awaitQuery(file, "four")

	valid := filepath.Join(t.TempDir(), "valid.yaml")
	testkit.ReplaceFile(t, valid, config("file", "three"))
	testkit.ReplaceFile(t, file, config("file", "five, path: '['"))
	serve.awaitStderr(t, "error: the previous config stays in effect: "+file+":8:")
	awaitQuery(valid, "three")
	run(t, harness.Crdcache(t), "serve", "status").expect(t, 0,
		"the previous config stays in effect: "+file+":8:", "")
	testkit.ReplaceFile(t, file, config("another", "six"))
	serve.awaitStderr(t, "note: the config has changed: [file another]")
	awaitQuery(file, "six")

	harness.Apply(t, widget(group, ns, "b"))
	watch.awaitOutput(t, "widget."+group+"/b\n")
	if errs := watch.stderrText(); !strings.HasSuffix(errs,
		"note: widgets.v1."+group+" is read from the cache server\n") {
		t.Errorf("the watch moved from the cache server to the cluster: %s", errs)
	}
	if code := serve.interrupt(t); code != 130 {
		t.Errorf("serve ended with exit code %d: %s", code, serve.stderrText())
	}
}
