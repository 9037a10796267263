package dynamicinformer_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// minUpstreamTests is the number of client-go's tests in 0.36, including subtests.
const minUpstreamTests = 12

// TestUpstream runs client-go's own tests with this package. Their source is in the module cache.
func TestUpstream(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const stock = `"k8s.io/client-go/dynamic/dynamicinformer"`
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", stock[1:len(stock)-1]).Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(dir)), "informer_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(source, []byte(stock)) {
		t.Fatalf("client-go's test does not import %s", stock)
	}
	source = bytes.Replace(source, []byte(stock),
		[]byte(`"github.com/crdcache/crdcache/adapters/compat/dynamicinformer"`), 1)
	temporary := t.TempDir()
	adapted, overlay := filepath.Join(temporary, "informer_test.go"), filepath.Join(temporary, "overlay.json")
	if err := os.WriteFile(adapted, source, 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(here, "upstream", "informer_test.go"): adapted}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, files, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(temporary, "upstream.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o",
		program, "./upstream").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// client-go's tests change objects after the sync without waiting for the watch. Its fake client loses
	// changes before the watch, so a slow machine may need a second attempt.
	var out []byte
	for range 3 {
		out, err = exec.CommandContext(t.Context(), program, "-test.v").CombinedOutput()
		if err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	passed := len(regexp.MustCompile(`(?m)^\s*--- PASS: `).FindAll(out, -1))
	if passed < minUpstreamTests {
		t.Errorf("%d tests passed, want at least %d:\n%s", passed, minUpstreamTests, out)
	}
	t.Logf("%d of client-go's tests passed", passed)
}
