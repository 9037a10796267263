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
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

var (
	manFolder      = flag.String("man", "", "write the reference of all commands as man pages into this folder")
	markdownFolder = flag.String("markdown", "", "write it as Markdown into this folder")
)

// TestReference writes the reference of all commands. It checks that man pages and Markdown have the details
// and keep special characters.
func TestReference(t *testing.T) {
	man, markdown := createFolder(t, *manFolder), createFolder(t, *markdownFolder)
	must(t, doc.GenMarkdownTree(referenceCommand(), markdown))
	root := referenceCommand()
	escapeFlags(root)
	// The date of the pages is SOURCE_DATE_EPOCH, if it is set.
	must(t, doc.GenManTree(root, &doc.GenManHeader{Title: "CRDCACHE", Section: "1", Source: "crdcache",
		Manual: "crdcache"}, man))
	for path, want := range map[string]string{
		filepath.Join(man, "crdcache-query.1"):        "expiry<now+14d",
		filepath.Join(markdown, "crdcache_query.md"):  `expiry\<now+14d`,
		filepath.Join(markdown, "crdcache_dump.md"):   `\*.cert-manager.io`,
		filepath.Join(markdown, "crdcache_serve.md"):  "--show-secrets",
		filepath.Join(man, "crdcache-serve-status.1"): "new link",
	} {
		page, err := os.ReadFile(path)
		must(t, err)
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("%s has no %s", path, want)
		}
	}
}

// createFolder creates the folder of a flag, or a temporary folder without the flag.
func createFolder(t *testing.T, path string) string {
	t.Helper()
	if path == "" {
		return t.TempDir()
	}
	must(t, os.MkdirAll(path, 0o755))
	return path
}

// referenceCommand returns the root command with all details in its descriptions, as Markdown.
func referenceCommand() *cobra.Command {
	root := cli.Command()
	root.DisableAutoGenTag = true
	var complete func(*cobra.Command)
	complete = func(cmd *cobra.Command) {
		if details := cmd.Annotations[session.DetailsAnnotation]; details != "" {
			cmd.Long += "\n\n" + details
		}
		cmd.Long = strings.NewReplacer("*", `\*`, "<", `\<`).Replace(cmd.Long)
		for _, sub := range cmd.Commands() {
			complete(sub)
		}
	}
	complete(root)
	return root
}

// escapeFlags escapes descriptions of flags, which only man pages parse as Markdown.
func escapeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "<", `\<`) })
	for _, sub := range cmd.Commands() {
		escapeFlags(sub)
	}
}

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
	must(t, err)
	text, err := os.ReadFile(page)
	must(t, err)
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
		must(t, os.WriteFile(page, []byte(updated), 0o644))
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
