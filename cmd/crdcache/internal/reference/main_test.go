package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
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

// TestPages checks that man pages and Markdown have the details and keep special characters.
func TestPages(t *testing.T) {
	man, markdown := t.TempDir(), t.TempDir()
	if err := run(man, markdown); err != nil {
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
