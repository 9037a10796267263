package cli_test

import (
	"strings"
	"testing"
)

// TestHostileFilesOnTerminal checks that files, definitions and configs cannot control the terminal.
func TestHostileFilesOnTerminal(t *testing.T) {
	for name, object := range hostileObjects() {
		file := writeTempFile(t, "a.json", object)
		for _, args := range [][]string{
			{"eval", ".spec", "-f", file}, {"eval", ".metadata.none.x", "-f", file}, {"validate",
				file}, {"validate", file, "--crds", file},
			{"suggest", "gizmos", "--crds",
				writeTempFile(t, "b.json", strings.ReplaceAll(object, `"Gizmo"`, `"CustomResourceDefinition"`))},
		} {
			t.Run(name+"/"+args[0], func(t *testing.T) {
				if _, shown := runOnTerminal(t, args...); shown == "" {
					t.Errorf("%q: stderr is empty", args)
				}
			})
		}
	}
}
