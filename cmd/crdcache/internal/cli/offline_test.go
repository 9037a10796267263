package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

const gizmoObject = `apiVersion: example.com/v1
kind: Gizmo
metadata: {name: a, namespace: web, labels: {app.kubernetes.io/name: shop}}
spec: {parts: [{id: p, size: 1}, {id: q, size: 2.5}], none: null, empty: {}}
`

// writeTempFile writes a file to a temporary directory and returns its path.
func writeTempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const demoData = "../../../../testdata"

// TestOfflineProblems verifies that unreadable documents are reported, and the others printed.
func TestOfflineProblems(t *testing.T) {
	file := writeTempFile(t, "a.yaml", gizmoObject+
		"---\nkind: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: web}\n")
	r := crdcache(t, "dump", "gizmos", "-o", "name", "--from", file)
	r.expect(t, cli.ExitFailed, "gizmo.example.com/a\n")
	if !strings.Contains(r.errOut, "warning: ") || !strings.Contains(r.errOut, "a.yaml") ||
		!strings.Contains(r.errOut, "error: ") {
		t.Errorf("stderr is %q, want a warning about the inferred type and the error of a document",
			r.errOut)
	}
	r = crdcache(t, "query", "gizmos", "--keys-only", "--from", file)
	r.expect(t, cli.ExitFailed, "web/a\n")
	r = crdcache(t, "dump", "configmaps", "-o", "name", "--from", file)
	r.expect(t, cli.ExitFailed, "configmap/c\n")
	if strings.Contains(r.errOut, "warning: ") {
		t.Errorf("stderr is %q, want no warning about an unused type", r.errOut)
	}

	var out, errOut bytes.Buffer
	code := cli.Main(t.Context(), []string{"crdcache", "dump", "gizmos", "-o", "name", "--from", "-"},
		strings.NewReader(gizmoObject), &out, &errOut)
	result{code, out.String(), errOut.String()}.expect(t, cli.ExitOK, "gizmo.example.com/a\n")

	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"missing file": {[]string{"dump", "x", "--from", filepath.Join(t.TempDir(), "none")},
			cli.ExitFailed, "none"},
		"two places": {[]string{"dump", "x", "--from", file, "-s", "http://localhost"}, cli.ExitUsage,
			"--from and --server cannot be used together"},
		"unknown type": {[]string{"dump", "nope", "--from", demoData + "/crds"}, cli.ExitFailed,
			`"nope"; the files have neither objects of this type`},
		"similar type": {[]string{"dump", "wrkloads", "--from", demoData + "/crds"}, cli.ExitFailed,
			"did you mean workloads.demo.crdcache.dev?\n"},
		"object": {[]string{"dump", "workloads", "dns", "--from", demoData + "/crds"}, cli.ExitFailed,
			`workloads.demo.crdcache.dev "dns" not found`},
		"no path": {[]string{"dump", "x", "--from", ""}, cli.ExitFailed, "a path is empty"},
		"no config": {[]string{"dump", "workloads", "--from", demoData + "/crds", "--config", ""},
			cli.ExitUsage, "--config is empty: is a shell variable unset?"},
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

// TestOfflineWatch verifies that changes of files are reported as changes of objects.
func TestOfflineWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	writeFile := func(text string) {
		t.Helper()
		must(t, os.Rename(writeTempFile(t, "next", text), file))
	}
	writeFile(gizmoObject)
	w := watchGizmos(t, "gizmos", "--from", dir, "-o",
		"custom-columns=N:.metadata.name,S:.spec.parts[0].size")
	w.expect("N S", "a 1")
	writeFile(strings.Replace(gizmoObject, "size: 1", "size: 7", 1))
	w.expect("a 7")
	// Later problems are printed immediately, not at the end.
	writeFile(strings.Replace(gizmoObject, "size: 1", "size: 8", 1) + "---\na: [\n")
	w.expect("a 8")
	w.interrupt()
	if !strings.Contains(w.errOut.String(), "error: "+file+":") || !strings.Contains(w.errOut.String(),
		"not valid YAML") {
		t.Errorf("stderr: %s", w.errOut)
	}
}

// TestSnapshotVersions verifies that a snapshot is read like its files, which have objects in two versions.
func TestSnapshotVersions(t *testing.T) {
	inVersion := func(version, name string) string {
		return fmt.Sprintf("---\napiVersion: example.com/%s\nkind: Gizmo\nmetadata: {name: %s, namespace: web}\n%[1]s: x\n", version, name)
	}
	definition := func(strategy string) string {
		const version = "  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {%[1]s: {type: string}}}}}\n"
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gizmos.example.com}\n" +
			"spec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: gizmos, kind: Gizmo}\n" +
			"  conversion: {strategy: " + strategy + "}\n  versions:\n" + fmt.Sprintf(version, "v1", true) + fmt.Sprintf(version, "v1beta1", false)
	}
	const beta, to = "gizmos.v1beta1.example.com", "  ~ .apiVersion: \"example.com/v1beta1\" → \"example.com/v1\"\n  + .v1: \"x\"\n  - .v1beta1: \"x\"\n"
	reads := []string{"dump gizmos -o yaml", "dump gizmos.v1.example.com -o yaml", "dump " + beta + " -o yaml", "dump gizmos",
		"dump gizmo/b -o yaml -n web", "query gizmos -o jsonl", "query " + beta + " --where .v1beta1 -o jsonl", "tree gizmo/b -n web --quiet"}
	const changedBoth, changedB = "0 added, 0 removed, 2 changed\n~ web/b\n" + to + "~ web/c\n" + to,
		"1 added, 1 removed, 1 changed\n+ web/c\n- web/a\n~ web/b\n" + to
	mixed, one := inVersion("v1", "a")+inVersion("v1beta1", "b"), inVersion("v1beta1", "b")+inVersion("v1beta1", "c")
	for name, tt := range map[string]struct {
		files, typeName, diff string // diff is the difference to objects in v1
	}{
		"one":                            {one, "gizmos", changedBoth},
		"one, not of the definition":     {definition("None") + one, "gizmos", changedBoth},
		"one, converted by a webhook":    {definition("Webhook") + one, "--all", changedBoth},
		"several":                        {mixed, "gizmos", changedB},
		"several, without conversion":    {definition("None") + mixed, "gizmos", changedB},
		"several, by webhook":            {definition("Webhook") + mixed, "--all", changedB},
		"several, one named, by webhook": {definition("Webhook") + mixed, beta, "1 added, 0 removed, 1 changed\n+ web/c\n~ web/b\n" + to},
	} {
		t.Run(name, func(t *testing.T) {
			path, saved := writeTempFile(t, "a.yaml", tt.files), filepath.Join(t.TempDir(), "saved")
			read := func(path, args string) result {
				r := crdcache(t, append(strings.Fields(args), "--from", path)...)
				r.errOut, _, _ = strings.Cut(strings.ReplaceAll(r.errOut, path, "PATH"), "warning: PATH:2: document 1: no CustomResourceDefinition")
				return r
			}
			save := read(path, "snapshot save "+saved+" "+tt.typeName)
			if tt.typeName != beta {
				crdcache(t, append([]string{"diff", "--quiet", saved, path},
					strings.Fields(strings.TrimPrefix(tt.typeName, "--all"))...)...).expect(t, cli.ExitOK, "")
			}
			for _, args := range reads {
				if got, want := read(saved, args), read(path, args); got != want && tt.typeName != beta {
					t.Errorf("%s: got %+v, from files %+v", args, got, want)
				}
			}
			v1 := writeTempFile(t, "v1.yaml", definition("None")+inVersion("v1", "b")+inVersion("v1", "c"))
			r := crdcache(t, "diff", saved, v1, "gizmos")
			if save.code != cli.ExitOK || r.out != "gizmos.example.com: "+tt.diff {
				t.Errorf("diff to one version:\n%s\nwant:\n%s\nstderr:\n%s%s", r.out, tt.diff, save.errOut, r.errOut)
			}
		})
	}
}
