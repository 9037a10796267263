package dynamicinformer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeSnippetCompiles takes the Go program out of the README, so that it can't go stale.
func TestReadmeSnippetCompiles(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```go\n")
	snippet, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("README.md has no Go snippet")
	}
	// Inside the module, so that its imports are found; go ignores folders that start with a dot.
	dir, err := os.MkdirTemp(".", ".readme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(snippet), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "readme"), "./"+file).CombinedOutput()
	if err != nil {
		t.Errorf("the README's snippet does not compile: %v\n%s", err, out)
	}
}
