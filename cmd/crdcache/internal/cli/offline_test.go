package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

const demoData = "../../../../testdata"

// TestOffline: every verb works on files as on a cluster.
func TestOffline(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"query":     {[]string{"query", "workloads", "--config", demoConfig, "--index", "environment=production-eu", "--count"}, "8\n"},
		"groups":    {[]string{"query", "workloads", "--config", demoConfig, "--group-by", "environment", "--no-headers"}, ""},
		"dump":      {[]string{"dump", "environments.demo.crdcache.dev", "-o", "name"}, ""},
		"namespace": {[]string{"dump", "workloads", "-n", "payments", "-o", "name"}, ""},
		"resources": {[]string{"resources", "--custom", "-o", "name"}, "environments.demo.crdcache.dev\nreleases.demo.crdcache.dev\nroutes.demo.crdcache.dev\nworkloads.demo.crdcache.dev\n"},
		"suggest":   {[]string{"suggest", "routes"}, ""},
		"built-in":  {[]string{"dump", "namespaces", "-o", "jsonpath={.items[*].metadata.name}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append(tt.args, "--from", demoData+"/crds", "--from", demoData+"/objects")...)
			if r.code != exit.OK || r.out == "" || tt.want != "" && r.out != tt.want {
				t.Errorf("exit code %d, stdout\n%swant\n%sstderr %s", r.code, r.out, tt.want, r.errOut)
			}
		})
	}
}

// TestOfflineEverything: everything is what the files have, and no more.
func TestOfflineEverything(t *testing.T) {
	file := write(t, "a.yaml", evalObjects)
	r := crdcache(t, "dump", "*", "-o", "name", "--quiet", "--from", file)
	r.expect(t, exit.OK, "gizmo.example.com/a\n")
}

// TestOfflineProblems: what cannot be read is reported and does not keep the rest from being shown.
func TestOfflineProblems(t *testing.T) {
	file := write(t, "a.yaml", evalObjects+"---\nkind: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: web}\n")
	r := crdcache(t, "dump", "gizmos", "-o", "name", "--from", file)
	r.expect(t, exit.Failed, "gizmo.example.com/a\n")
	if !strings.Contains(r.errOut, "warning: ") || !strings.Contains(r.errOut, "a.yaml") || !strings.Contains(r.errOut, "error: ") {
		t.Errorf("stderr is %q, want a warning of the type that is made up and the error of a document", r.errOut)
	}
	r = crdcache(t, "query", "gizmos", "--keys-only", "--from", file)
	r.expect(t, exit.Failed, "web/a\n")

	var out, errOut bytes.Buffer
	code := cli.Main(t.Context(), []string{"crdcache", "dump", "gizmos", "-o", "name", "--from", "-"}, strings.NewReader(evalObjects), &out, &errOut)
	result{code, out.String(), errOut.String()}.expect(t, exit.OK, "gizmo.example.com/a\n")

	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"missing file": {[]string{"dump", "x", "--from", filepath.Join(t.TempDir(), "none")}, exit.Failed, "none"},
		"two places":   {[]string{"dump", "x", "--from", file, "-s", "http://localhost"}, exit.Usage, "--from and --server exclude each other"},
		"unknown type": {[]string{"dump", "nope", "--from", demoData + "/crds"}, exit.Failed, `"nope"; the files have no object of it`},
		"similar type": {[]string{"dump", "wrkloads", "--from", demoData + "/crds"}, exit.Failed, "did you mean workloads.demo.crdcache.dev?\n"},
		"object":       {[]string{"dump", "workloads", "dns", "--from", demoData + "/crds"}, exit.Failed, `workloads.demo.crdcache.dev "dns" not found`},
		"no path":      {[]string{"dump", "x", "--from", ""}, exit.Failed, "a path is empty"},
		"no config":    {[]string{"dump", "workloads", "--from", demoData + "/crds", "--config", ""}, exit.Usage, "--config names no file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, tt.args...)
			r.expect(t, tt.code, "")
			if !strings.Contains(r.errOut, tt.want) {
				t.Errorf("stderr is %q, want %q in it", r.errOut, tt.want)
			}
		})
	}
}

// TestOfflineWatch: changes of the files are changes of the objects.
func TestOfflineWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	put := func(text string) {
		t.Helper()
		next := filepath.Join(t.TempDir(), "next")
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	put(evalObjects)
	w := watchGizmos(t, "gizmos", "--from", dir, "-o", "custom-columns=N:.metadata.name,S:.spec.parts[0].size")
	w.expect("N S", "a 1")
	put(strings.Replace(evalObjects, "size: 1", "size: 7", 1))
	w.expect("a 7")
	// What goes wrong from now on is said when it does: nobody asks for it in the end.
	put(strings.Replace(evalObjects, "size: 1", "size: 8", 1) + "---\na: [\n")
	w.expect("a 8")
	w.interrupt()
	if !strings.Contains(w.errOut.String(), "error: "+file+":") || !strings.Contains(w.errOut.String(), "not valid YAML") {
		t.Errorf("stderr: %s", w.errOut)
	}
}
