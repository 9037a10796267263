package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewriteTour = flag.Bool("rewrite-tour", false, "write the output of the commands in docs/tour.md into it")

// consoleBlock matches a block of commands and their output.
var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// TestTour runs the commands of docs/tour.md and compares their output.
func TestTour(t *testing.T) {
	const page = "../../../../docs/tour.md"
	bin := t.TempDir()
	program, err := os.Executable() // TestMain runs the command under this name
	if err == nil {
		err = os.Symlink(program, filepath.Join(bin, "crdcache"))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !consoleBlock.Match(text) {
		t.Fatal("docs/tour.md has no console block")
	}
	updated := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for i, command := range commandsOf(block) {
			if i > 0 {
				b.WriteString("\n")
			}
			b.WriteString("$ " + command + "\n" + runTourCommand(t, bin, command))
		}
		return b.String() + "```"
	})
	if *rewriteTour {
		if err := os.WriteFile(page, []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), updated); diff != "" {
		t.Errorf("docs/tour.md is out of date (go test ./cmd/crdcache/internal/cli -run TestTour -rewrite-tour):\n%s", diff)
	}
}

// commandsOf returns the lines of a block that start with a prompt.
func commandsOf(block string) []string {
	var all []string
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ "); ok {
			all = append(all, command)
		}
	}
	return all
}

// runTourCommand runs a command and returns stdout and stderr.
func runTourCommand(t *testing.T, bin, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = "../../../../testdata"
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + bin, "LC_ALL=C.UTF-8"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exited *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return out.String()
}
