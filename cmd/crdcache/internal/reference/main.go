// Command reference writes the reference of all commands as man pages and as Markdown.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

func main() {
	man := flag.String("man", "", "directory for man pages")
	markdown := flag.String("markdown", "", "directory for Markdown pages")
	flag.Parse()
	if err := run(*man, *markdown); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(man, markdown string) error {
	if markdown != "" {
		if err := os.MkdirAll(markdown, 0o755); err != nil {
			return err
		}
		if err := doc.GenMarkdownTree(command(), markdown); err != nil {
			return err
		}
	}
	if man == "" {
		return nil
	}
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	root := command()
	escapeFlags(root)
	// The date of the pages is SOURCE_DATE_EPOCH, if it is set.
	return doc.GenManTree(root, &doc.GenManHeader{Title: "CRDCACHE", Section: "1", Source: "crdcache",
		Manual: "crdcache"}, man)
}

// command returns the root command with all details in its descriptions, as Markdown.
func command() *cobra.Command {
	root := cli.Command()
	root.DisableAutoGenTag = true
	var complete func(*cobra.Command)
	complete = func(cmd *cobra.Command) {
		if details := cmd.Annotations[cli.Details]; details != "" {
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
