package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// TestPageIsUpToDate: docs/cli.md is what the commands say of themselves.
func TestPageIsUpToDate(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := markdown(cli.Command()); !bytes.Equal(page, want) {
		t.Error("docs/cli.md is out of date: run make generate")
	}
}

// TestEveryVerb checks that each verb has a description and examples.
func TestEveryVerb(t *testing.T) {
	page := string(markdown(cli.Command()))
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
		if !strings.Contains(page, "\n## "+cmd.Name()+"\n") {
			t.Errorf("%s is missing in the page", cmd.Name())
		}
	}
}

// TestManPages keeps text in angle brackets in man pages.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if err := run("", dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "crdcache-query.1"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, []byte("expiry<now+14d")) {
		t.Error("the man page of query lacks expiry<now+14d")
	}
}
