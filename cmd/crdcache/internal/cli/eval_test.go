package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

const evalObjects = `apiVersion: example.com/v1
kind: Gizmo
metadata: {name: a, namespace: web, labels: {app.kubernetes.io/name: shop}}
spec: {parts: [{id: p, size: 1}, {id: q, size: 2.5}], none: null, empty: {}}
`

// writeTempFile writes a file to a temporary directory and returns its path.
func writeTempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEval verifies that eval prints values as JSON lines, and explains missing values on stderr.
func TestEval(t *testing.T) {
	file := writeTempFile(t, "a.yaml", evalObjects)
	const nothing = "gizmo.example.com/web/a: no value: "
	for path, want := range map[string]struct{ out, errOut string }{
		".metadata.name":              {"\"a\"\n", ""},
		"{.spec.parts[*].size}":       {"1\n2.5\n", ""},
		".spec.none":                  {"null\n", ""},
		".spec.parts[?(@.id==\"q\")]": {`{"id":"q","size":2.5}` + "\n", ""},
		".spec.prats": {"",
			nothing + ".spec is a map with the keys empty, none, parts; .prats matches nothing there\n"},
		"{.spec.Parts[0]}": {"",
			nothing + ".spec is a map with the keys empty, none, parts; .Parts matches nothing there; did you mean parts?\n"},
		".spec.parts.id": {"",
			nothing + ".spec.parts is a list of 2 elements; .id matches nothing there; write [*] before it to select from each element\n"},
		".spec.empty[*]": {"",
			nothing + ".spec.empty is an empty map; [*] matches nothing there; [*] selects the elements of lists; write .* for the values of a map\n"},
		".spec.none.x": {"", nothing + ".spec.none is null; .x matches nothing there\n"},
		".spec.parts[*].zz": {"",
			nothing + ".spec.parts[*] has 2 values, and .zz matches nothing in them; the first is a map with the keys id, size\n"},
		".spec.parts[7]": {"",
			nothing + ".spec.parts is a list of 2 elements; [7] matches nothing there\n"},
		".metadata.name.x": {"",
			nothing + ".metadata.name is the string \"a\"; .x matches nothing there\n"},
		".metadata.labels.app": {"",
			nothing + ".metadata.labels is a map with the keys app.kubernetes.io/name; .app matches nothing there; did you mean [\"app.kubernetes.io/name\"]?\n"},
		".nope": {"",
			nothing + "the object is a map with the keys apiVersion, kind, metadata, spec; .nope matches nothing there\n"},
	} {
		t.Run(path, func(t *testing.T) {
			r := crdcache(t, "eval", path, "-f", file)
			r.expect(t, cli.ExitOK, want.out)
			if r.errOut != want.errOut {
				t.Errorf("stderr is\n%swant\n%s", r.errOut, want.errOut)
			}
			if r = crdcache(t, "eval", path, "-f", file, "--quiet"); r.errOut != "" || r.out != want.out {
				t.Errorf("with --quiet, stdout is %q and stderr %q, want the same stdout and no stderr",
					r.out, r.errOut)
			}
		})
	}
}

// TestEvalQuotedKey verifies that a quoted key with a dot is one key, with a warning.
func TestEvalQuotedKey(t *testing.T) {
	file := writeTempFile(t, "a.yaml", evalObjects)
	r := crdcache(t, "eval", ".metadata.labels['app.kubernetes.io/name']", "-f", file)
	r.expect(t, cli.ExitOK, "\"shop\"\n")
	if !strings.HasPrefix(r.errOut, "warning: W101: ") {
		t.Errorf("stderr is %q, want a warning", r.errOut)
	}
}
