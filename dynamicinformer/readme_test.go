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
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(snippet), 0o600); err != nil {
		t.Fatal(err)
	}
	// Run in a folder of the module, go finds the imports of a file anywhere.
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "readme"), file).CombinedOutput()
	if err != nil {
		t.Errorf("the README's snippet does not compile: %v\n%s", err, out)
	}
}
