package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// TestEveryVerb checks that each verb has a description and examples.
func TestEveryVerb(t *testing.T) {
	for _, cmd := range cli.Command().Commands() {
		if !cmd.IsAvailableCommand() {
			continue
		}
		if cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s has no description", cmd.Name())
		}
		if cmd.Example == "" && strings.Contains(cmd.Use, "...") {
			t.Errorf("%s has no example", cmd.Name())
		}
	}
}

// TestReference writes the reference of all commands. It checks that man pages and Markdown have the details
// and keep special characters.
func TestReference(t *testing.T) {
	man, markdown := createFolder(t, *manFolder), createFolder(t, *markdownFolder)
	if err := doc.GenMarkdownTree(referenceCommand(), markdown); err != nil {
		t.Fatal(err)
	}
	root := referenceCommand()
	escapeFlags(root)
	// The date of the pages is SOURCE_DATE_EPOCH, if it is set.
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "CRDCACHE", Section: "1", Source: "crdcache",
		Manual: "crdcache"}, man); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(man, "crdcache-query.1"):        "expiry<now+14d",
		filepath.Join(markdown, "crdcache_query.md"):  `expiry\<now+14d`,
		filepath.Join(markdown, "crdcache_dump.md"):   `\*.cert-manager.io`,
		filepath.Join(markdown, "crdcache_serve.md"):  "--show-secrets",
		filepath.Join(man, "crdcache-serve-status.1"): "new link",
	} {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
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

var rewriteMessages = flag.Bool("rewrite-messages", false, "write all messages into testdata/messages.txt")

// TestMessages writes the texts of all errors, warnings and notes of the command to testdata/messages.txt for
// review, and compares them with the file.
func TestMessages(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text := messageOfCall(n); text != "" {
				all = append(all, fmt.Sprintf("%s: %q", filepath.Base(filepath.Dir(name)), text))
			}
			return true
		})
	}
	slices.Sort(all)
	got := slices.Compact(all)
	golden := filepath.Join("testdata", "messages.txt")
	if *rewriteMessages {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), got); diff != "" {
		t.Errorf("review the messages, then run with -rewrite-messages (-want +got):\n%s", diff)
	}
}

// messageOfCall returns the text of a call that creates or prints a message, or "".
func messageOfCall(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	name := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	if !slices.Contains([]string{"Errorf", "New", "Usagef", "UsageLines", "Fprintf", "Fprintln", "warn", "Warn",
		"Notef", "notef", "printLine", "printLineLocked", "printLater", "Sprintf"}, name) {
		return ""
	}
	for _, arg := range call.Args {
		if text := literalText(arg); strings.Contains(text, " ") {
			return text
		}
	}
	return ""
}

// literalText returns a string literal or the concatenation of literals, or "".
func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literalText(e.X) + literalText(e.Y)
	}
	return ""
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
