package cli_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
